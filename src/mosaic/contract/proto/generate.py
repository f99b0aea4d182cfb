"""Generate the protobuf code: `python -m mosaic.contract.proto.generate` (needs grpcio-tools)."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
GENERATED = ("trainer_pb2.py", "trainer_pb2.pyi", "trainer_pb2_grpc.py")


def generate(folder: Path) -> None:
    """Write the generated files into `folder`."""
    from grpc_tools import protoc

    arguments = [
        "protoc",
        f"-I{HERE}",
        f"--python_out={folder}",
        f"--pyi_out={folder}",
        f"--grpc_python_out={folder}",
    ]
    code = protoc.main([*arguments, str(HERE / "trainer.proto")])
    if code != 0:
        raise SystemExit(code)
    service = folder / "trainer_pb2_grpc.py"
    # protoc writes a top-level import; the module lives in a package.
    text = service.read_text().replace(
        "import trainer_pb2 as", "from mosaic.contract.proto import trainer_pb2 as"
    )
    service.write_text(text)


if __name__ == "__main__":
    generate(HERE)
