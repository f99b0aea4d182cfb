"""On the path of a daemon under test: writes down, in $FUZZ_AUDIT, what it writes outside $MOSAIC_VAR."""

import os
import sys

_CHANGES = {
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.rename",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _watch(report: str, var: str) -> None:
    allowed = (var, "/dev/null", "/dev/tty", "/dev/shm/", "/proc/self/")
    descriptor = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def audit(event: str, args: tuple) -> None:  # type: ignore[type-arg]
        writes = event in _CHANGES or (event == "open" and args[2] & _WRITES)
        if not writes or not isinstance(args[0], str | bytes):
            return
        path = os.path.abspath(os.fsdecode(args[0]))
        if not path.startswith(allowed) and "__pycache__" not in path:
            os.write(descriptor, f"{event} {path}\n".encode(errors="replace"))

    sys.addaudithook(audit)


if "mosaic.trainer" in sys.orig_argv and os.environ.get("FUZZ_AUDIT"):
    _watch(os.environ["FUZZ_AUDIT"], os.environ["FUZZ_VAR"])
