"""Runs one training script in this process, for its supervisor.

Called by its path, in any interpreter from Python 3.8 on; it needs the standard library only:

    python launcher.py [--parent PID] [--go-fd N] [--report-fd N] [--preload | --by MODULE | --exec WORDS]
                       [--before MODULE] TARGET [arguments of the script]

TARGET is a dotted module or a file. `--preload` imports a module and calls its `main()`: the import happens
while the supervisor still shakes hands, training begins when `go` has come through the pipe; that `main()`
has returned 0 is reported, as what it runs could end this process with that code too. `--by` does the same
with a function that the `prepare(TARGET, arguments)` of a module gives. `--before` names a module whose
`main(TARGET, arguments)` is called before that import. `--exec` makes this process the program that its
words, a JSON list, name; TARGET comes after them.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import ctypes
import errno
import faulthandler
import importlib
import importlib.util
import io
import json
import os
import re
import runpy
import signal
import stat
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PR_SET_PDEATHSIG = 1
# `supervisor/stalls.py`, which reads what is written here, has the same two.
STACK_SIGNAL = signal.SIGRTMAX - 2
END_WORD = b"end"


def main(argv: list[str]) -> int:
    if sys.path[0] == HERE:
        # The folder of this file is the supervisor's, not the script's.
        del sys.path[0]
    parser = argparse.ArgumentParser(prog="launcher.py", description=__doc__)
    parser.add_argument("--parent", type=int)
    parser.add_argument("--go-fd", type=int)
    parser.add_argument("--report-fd", type=int)
    parser.add_argument("--preload", action="store_true")
    parser.add_argument("--by", metavar="MODULE")
    parser.add_argument("--before", metavar="MODULE")
    parser.add_argument("--exec", type=json.loads, metavar="WORDS")
    parser.add_argument("target")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    if options.parent is not None:
        die_with(options.parent)
    print_patiently()
    if not options.preload and options.by is None:
        # Our own algorithms keep their arguments in files, and look such values up where they are used.
        options.arguments = [with_secrets(word) for word in options.arguments]
    if options.report_fd is not None:
        tell_stack(options.report_fd)
    sys.argv = [options.target, *options.arguments]
    call: Callable[[], Any] | None = None
    if options.before is not None:
        importlib.import_module(options.before).main(options.target, options.arguments)
    if options.preload:
        call = importlib.import_module(options.target).main
    elif options.by is not None:
        call = importlib.import_module(options.by).prepare(options.target, options.arguments)
    if options.go_fd is not None:
        wait_for_go(options.go_fd)
    if call is not None:
        code = exit_code_of(call)
        if code == 0 and options.report_fd is not None:
            os.pwrite(options.report_fd, END_WORD, 0)
        return code
    if options.exec is not None:
        return become([*options.exec, options.target, *options.arguments])
    register_environment(options.arguments)
    return run_foreign(options.target)


def with_secrets(word: str) -> str:
    """An argument with the values of the variables that it refers to; `ps` shows it without them."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            return match[0]
        return json.dumps(found)[1:-1] if is_json else found

    is_json = word.partition("=")[2].startswith(("{", "["))
    return re.sub(r"(?:(?<==)|(?<=\"))@env:([A-Za-z_]\w*)(?=\"|$)", value, word)


def die_with(parent: int) -> None:
    """End this process when its supervisor ends, however that happens."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before we could ask for the signal.
        os._exit(1)


def wait_for_go(descriptor: int) -> None:
    """Wait for the supervisor's word; a closed pipe means that this run is not to be."""
    word = os.read(descriptor, 1)
    os.close(descriptor)
    if not word:
        os._exit(1)


def tell_stack(descriptor: int) -> None:
    """Write what this thread does to the report whenever the supervisor asks by a signal."""
    os.set_inheritable(descriptor, False)
    faulthandler.register(STACK_SIGNAL, file=descriptor, all_threads=False)


class PatientFile(io.FileIO):
    """A log that waits for space when the disk is full: a word too many must not end the script."""

    def write(self, data: Any) -> int:
        rest, told = memoryview(data).cast("B"), False
        try:
            while rest:
                try:
                    rest = rest[super().write(rest) :]
                except OSError as error:
                    if error.errno not in (errno.ENOSPC, errno.EDQUOT) or asked_to_stop():
                        raise
                    told = told or tell_waiting(True)
                    time.sleep(1)
        finally:
            if told:
                tell_waiting(False)
        return memoryview(data).nbytes


def print_patiently() -> None:
    """Let what the script prints wait for space, where it goes to a file."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            file = PatientFile(stream.fileno(), "wb", closefd=False)
            patient = io.TextIOWrapper(file, stream.encoding, stream.errors, "\n", write_through=True)
            setattr(sys, name, patient)


def asked_to_stop() -> bool:
    """Whether one of our own algorithms has noted a signal."""
    return getattr(sys.modules.get("cleanrl_worker.kit.stopping"), "asked", False)


def tell_waiting(waits: bool) -> bool:
    """Tell the supervisor, as `mosaic.contract.phases` does, which is not to be had in every interpreter."""
    path = os.path.join(os.environ.get("CLEANRL_RUN_DIR", "."), ".waits_for_space")
    with contextlib.suppress(OSError):
        if waits:
            open(path, "a").close()
        else:
            os.unlink(path)
    return True


def become(command: list[str]) -> int:
    """Be another program from now on; the exit code is what a shell gives when there is none."""
    # Python ignores these, and the program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127


def exit_code_of(call: Callable[[], Any]) -> int:
    code = call()
    return code if isinstance(code, int) else 0


def run_foreign(target: str) -> int:
    """Run somebody's script as its author would: as `__main__`, or by the `main()` that it only defines."""
    is_file = os.path.sep in target
    if is_file:
        sys.path.insert(0, os.path.dirname(target))
    else:
        load_probe().prefer_own(target)
    path = target if is_file else find_source(target)
    if path is not None and only_defines_main(path):
        return exit_code_of((load_file(path) if is_file else importlib.import_module(target)).main)
    if is_file:
        runpy.run_path(target, run_name="__main__")
    else:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    return 0


def register_environment(arguments: list[str]) -> None:
    """Import the package that registers the environment of a script which does not do so itself.

    Scripts of the time when gymnasium imported such packages by itself do not. Where that fails, the script
    says what it misses.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--env-id", default="")
    env_id = parser.parse_known_args(arguments)[0].env_id
    if env_id:
        with contextlib.suppress(Exception):
            load_probe().import_family(env_id)


def load_probe() -> ModuleType:
    probe = load_file(os.path.join(HERE, "probe.py"))
    # The script may have a module of that name itself.
    del sys.modules["probe"]
    return probe


def load_file(path: str) -> ModuleType:
    """A module made from a file that is on no path."""
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find_source(module: str) -> str | None:
    spec = importlib.util.find_spec(module)
    return spec.origin if spec is not None and spec.origin and spec.origin.endswith(".py") else None


def only_defines_main(path: str) -> bool:
    """Whether a script has a `main()` without arguments and does not run it by itself."""
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    defines = any(
        isinstance(node, ast.FunctionDef) and node.name == "main" and not required_arguments(node)
        for node in tree.body
    )
    return defines and not any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(tree)
    )


def required_arguments(function: ast.FunctionDef) -> int:
    arguments = function.args
    positional = len(arguments.args) + len(getattr(arguments, "posonlyargs", [])) - len(arguments.defaults)
    return positional + sum(default is None for default in arguments.kw_defaults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
