"""Loading an algorithm from its module or its file, and running it.

`python -m cleanrl_worker.kit.loading ALGORITHM [its flags]` trains one that is a plug-in or a file;
`--schema ALGORITHM` prints as one JSON line what it takes, or what is wrong with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import json
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY, SPEC_NAME, AlgorithmFile, is_path
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.describe import UnclearField, describe_algorithm, parameters_of, schema_of
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.schemas.model import remember
from cleanrl_worker.schemas.spaces import ACTION_KINDS, OBSERVATION_KINDS
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.outside import read_json

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_LEFT_OUT = re.compile(r"AlgorithmSpec\.__init__\(\) missing \d+ required .*arguments?: (.*)")


@contextlib.contextmanager
def told_as_json() -> Iterator[None]:
    """Print whether what is done inside fits, as one JSON line, for a process that has no torch."""
    found: dict[str, str] = {}
    try:
        yield
    except MosaicError as error:
        found = {"error": str(error)}
    print(json.dumps(found))


def load_spec(algo: str) -> AlgorithmSpec:
    """The algorithm of that name, of a module (`module` or `module:NAME`) or of a file.

    A UserError says in one sentence what is wrong with it. Importing it runs its code.
    """
    # What is installed is looked through for a name alone, which has no dot.
    target = algo if is_path(algo) or "." in algo else DEFAULT_ALGO_REGISTRY.get(algo, algo)
    module_name, _, name = (target, "", SPEC_NAME) if is_path(target) else target.partition(":")
    where = Path(target).name if is_path(target) else module_name
    try:
        module = _load_file(Path(target)) if is_path(target) else importlib.import_module(module_name)
        spec: AlgorithmSpec = getattr(module, name or SPEC_NAME)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{where} is not an algorithm that can be used: {_told(error, target)}.") from error
    check_spec(spec, where)
    if is_path(target):
        spec = dataclasses.replace(spec, file=AlgorithmFile.of(Path(target)))
    if not target.startswith("cleanrl_worker."):
        # It may have the name of one of ours, whose spaces are others.
        for known in (algo, spec.name):
            remember(known, schema_of(spec))
    return spec


def _load_file(path: Path) -> ModuleType:
    # A name that nothing else has: the file may be called as a package is.
    name = f"algorithm_file_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None and found.loader is not None
    if str(path.parent) not in sys.path:
        # Last, so that a `random.py` beside it hides nothing of Python's.
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def _told(error: BaseException, target: str) -> str:
    """What went wrong, with the line of the algorithm's file where it did."""
    left_out = _LEFT_OUT.match(str(error)) if isinstance(error, TypeError) else None
    if left_out is not None:
        return f"its {SPEC_NAME} has no {left_out[1].replace(chr(39), '')}"
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == target]
    text = " ".join(str(error).split()) or "no reason is given"
    return f"{f'line {lines[-1]}: ' if lines else ''}{type(error).__name__}: {text}".rstrip(".")


def check_spec(spec: Any, where: str) -> None:
    """Raise UserError, which names the file and the part, for a spec with a part that is missing or wrong."""

    def require(right: bool, part: str, wrong: Any, wanted: str) -> None:
        if not right:
            raise UserError(f"{where}: {part} is {wrong!r:.80}, but must be {wanted}.")

    require(isinstance(spec, AlgorithmSpec), SPEC_NAME, spec, "an AlgorithmSpec")
    name = isinstance(spec.name, str) and _NAME.fullmatch(spec.name)
    require(bool(name), "SPEC.name", spec.name, "a text of letters, digits and underscores")
    is_args = isinstance(spec.args, type) and issubclass(spec.args, CommonArgs)
    is_args = is_args and "__dataclass_params__" in vars(spec.args)
    require(is_args, "SPEC.args", spec.args, "a dataclass that extends CommonArgs")
    for part in ("train", "load_policy", "check"):
        require(callable(getattr(spec, part)), f"SPEC.{part}", getattr(spec, part), "a function")
    for part, known in (("action_spaces", ACTION_KINDS), ("observation_spaces", OBSERVATION_KINDS)):
        given = getattr(spec, part)
        fits = isinstance(given, tuple | list) and given and all(one in known for one in given)
        require(bool(fits), f"SPEC.{part}", given, f"a tuple of some of {', '.join(known)}")
    sets = isinstance(spec.requires, tuple | list) and all(isinstance(one, str) for one in spec.requires)
    require(sets, "SPEC.requires", spec.requires, "a tuple of names of optional sets")
    require(isinstance(spec.exact, bool), "SPEC.exact", spec.exact, "True or False")
    require(spec.backend in ("torch", "jax"), "SPEC.backend", spec.backend, "'torch' or 'jax'")
    try:
        names = {one.name for one in parameters_of(spec.args)}
        spec.args()
    except (UnclearField, NameError, TypeError) as error:
        raise UserError(f"{where}: {spec.args.__name__} cannot be used: {error}.") from error
    if "num_envs" not in names:
        raise UserError(f"{where}: {spec.args.__name__} has no num_envs: add `num_envs: PositiveInt = 1`.")


def prepare(target: str, arguments: Sequence[str]) -> Callable[[], int]:
    """Import an algorithm; gives what trains it by the arguments in a JSON file and returns the exit code."""
    from cleanrl_worker.kit.run import run_with

    try:
        spec = load_spec(target)
    except MosaicError as error:
        # The supervisor reads what is written there.
        print(error, file=sys.stderr)
        code = error.exit_code
        return lambda: code
    return lambda: run_with(spec, read_json(Path(arguments[0]))["arguments"])


def _describe(target: str) -> dict[str, Any]:
    """What an algorithm takes and the files that say so; or what is wrong with it."""
    try:
        spec = load_spec(target)
    except MosaicError as error:
        return {"error": str(error)}
    root = Path(target if is_path(target) else str(sys.modules[target.partition(".")[0]].__file__)).parent
    files = {str(getattr(module, "__file__", None)) for module in list(sys.modules.values())}
    own = [Path(file) for file in files if file.endswith(".py") and Path(file).is_relative_to(root)]
    # An environment of packages in the user's folder is not of the user's making.
    read = [str(path) for path in own if "site-packages" not in path.relative_to(root).parts]
    return {"schema": {"name": spec.name, **describe_algorithm(spec)}, "files": sorted(read)}


def main(argv: Sequence[str]) -> int:
    """Print what an algorithm takes, or train it as its flags say; gives the exit code."""
    if argv[:1] == ["--schema"]:
        # What the file itself prints while it is imported is no part of the answer.
        with contextlib.redirect_stdout(sys.stderr):
            answer = _describe(argv[1])
        print(json.dumps(answer), flush=True)
        return 0
    if not argv or argv[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 0 if argv[:1] == ["--help"] else 2
    from cleanrl_worker.kit.run import run_algorithm

    try:
        spec = load_spec(str(Path(argv[0]).resolve()) if is_path(argv[0]) else argv[0])
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return run_algorithm(spec, argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
