"""`mosaic logs RUN`."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mosaic.cli import values
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.lines import as_left, byte_lines, text_of
from mosaic.cli.output import print_json, print_json_line, say, say_raw
from mosaic.cli.parser import Parser
from mosaic.contract.errors import NotFoundError

if TYPE_CHECKING:
    from mosaic.client import Client
    from mosaic.contract.paths import VarPaths


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "logs",
        "RUN [options]",
        "What a run has printed.",
        examples=("last", "last --stderr -n 30", "01K9ZW -f"),
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    which = parser.add_mutually_exclusive_group()
    for name, text in (
        ("stderr", "its error output instead of its standard output"),
        ("events", "its lifecycle events"),
        ("supervisor", "what the process that watches over it has logged"),
    ):
        which.add_argument(f"--{name}", dest="stream", action="store_const", const=name, help=text)
    parser.set_defaults(stream="stdout")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with new lines until the run ends")
    parser.add_argument("-n", "--lines", type=values.count, metavar="N", help="only the last N lines")
    parser.add_argument(
        "--raw",
        action="store_true",
        help="byte by byte, also the colours and other escape sequences that a terminal would obey",
    )
    parser.add_general(json="an object with the lines; with -f a line for each")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_run

    with connect(args) as client:
        try:
            run_id = find_run(client, args.run).run_id
        except NotFoundError:
            removed = _find_removed(client.paths, args.run)
            if removed is None:
                raise
            kept = client.paths.run_logs(removed)[args.stream]
            return _tell(removed, [kept.read_bytes()] if kept.exists() else [], args)
        if not args.follow:
            return _tell(run_id, client.logs(run_id, args.stream), args)
        show = _printer(args)
        for line in _lines(client, run_id, args):
            show(line)
    return 0


def _printer(args: argparse.Namespace) -> Callable[[bytes], None]:
    """What shows a line."""
    if args.json:
        return lambda line: print_json_line({"stream": args.stream, "line": text_of(line)})
    return say_raw if args.raw else lambda line: say(as_left(text_of(line)))


def _tell(run_id: str, log: Iterable[bytes], args: argparse.Namespace) -> int:
    """What a log has now."""
    lines = _last(byte_lines(log), args.lines)
    if args.json:
        print_json({"run_id": run_id, "stream": args.stream, "lines": list(map(text_of, lines))})
        return 0
    show = _printer(args)
    for line in lines:
        show(line)
    return 0


def _find_removed(paths: VarPaths, name: str) -> str | None:
    """The id of the only removed run that begins so and whose logs were kept."""
    found = [folder.name for folder in paths.kept_logs("").iterdir() if folder.name.startswith(name.upper())]
    return found[0] if len(found) == 1 else None


def _lines(client: Client, run_id: str, args: argparse.Namespace) -> Iterator[bytes]:
    if args.lines is None:
        return byte_lines(client.logs(run_id, args.stream, follow=True))
    return _follow_from_last(client, run_id, args)


def _follow_from_last(client: Client, run_id: str, args: argparse.Namespace) -> Iterator[bytes]:
    """The last lines there are now, then new ones, with no line cut at the seam."""
    so_far = b"".join(client.logs(run_id, args.stream))
    whole = so_far[: so_far.rfind(b"\n") + 1]
    yield from _last(byte_lines([whole]), args.lines)
    yield from byte_lines(client.logs(run_id, args.stream, follow=True, offset=len(whole)))


def _last(lines: Iterable[bytes], count: int | None) -> Iterable[bytes]:
    return lines if count is None else deque(lines, maxlen=count)
