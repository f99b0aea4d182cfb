"""What each command takes that looks at runs or keeps them in order; those that start runs are in `starting`.

Nothing heavy is imported here: a page of help comes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mosaic.cli import values
from mosaic.cli.parser import RUN_HELP, Parser, flag, number, repeated
from mosaic.cli.words import STATES_BY_NAME
from mosaic.contract.fsm import Outcome

LISTED = 20
LISTED_POLICIES = 30
USUAL_DAYS = 30
USUAL_PORT = 6006
DAEMON_ACTIONS = ("start", "stop", "status")
EXTRAS_ACTIONS = ("list", "install")


def scripts_parser(argv: Sequence[str]) -> Parser:
    return Parser(
        "scripts",
        "[options]",
        "List the shell scripts that train by name: those that come with MOSAIC, and those in the folder "
        "that $MOSAIC_CUSTOM_SCRIPTS_DIR names. Any other script trains by its path.",
        examples=("", "--json"),
    ).with_general(json="a list of scripts with what their heads say")


def phase_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "phase",
        "N [TEXT]",
        "Inside a script that runs as a run: say which phase begins. It appears wherever the run is shown.",
        examples=('1 "empty rooms"', '2 "rooms with a door"'),
    )
    parser.add_argument("number", metavar="N", type=values.count, help="the phase's number, from 1")
    parser.add_argument("text", metavar="TEXT", nargs="*", help="what the script does in it, in a few words")
    return parser.with_general()


def pause_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "pause",
        "RUN... [options]",
        "Stop all processes of runs where they are. They keep their memory, CPUs and GPUs, and paused time\n"
        "does not count against --max-minutes. Returns when they stand still.",
        examples=("last", "01K9ZW 01K9ZX"),
    )
    parser.add_runs()
    return parser.with_general(json="a list of the runs")


def resume_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "resume",
        "RUN... [options]",
        "Let paused runs go on exactly where they were.",
        examples=("last", "01K9ZW 01K9ZX"),
    )
    parser.add_runs()
    return parser.with_general(json="a list of the runs")


def cancel_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "cancel",
        "RUN... | --all [options]",
        "End runs that wait or train, and wait until their processes are gone.",
        examples=("last", "01K9ZW 01K9ZX --no-wait", "--all"),
    )
    parser.add_runs(nargs="*")
    flag(parser, "--all", help="every run that waits or lives")
    flag(parser, "--no-wait", help="ask them to end and return at once")
    return parser.with_general()


def gui_parser(argv: Sequence[str]) -> Parser:
    return Parser(
        "gui",
        "[options]",
        "Open the window: train, watch, compare, resume and play. Closing it stops no run.",
        examples=("", "--var ~/experiments"),
    ).with_general()


def runs_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "runs",
        "[options]",
        "List runs, newest first.",
        examples=("", "--state training", "--algo ppo --filter 'return>400'", "--tag baseline --json"),
    )
    parser.add_argument(
        "--state",
        "--status",
        action="append",
        default=[],
        metavar="STATE",
        help=f"only these: {', '.join(STATES_BY_NAME)}; may be repeated",
    )
    repeated(parser, "--tag", "TAG", help="only with this tag")
    parser.add_argument("--algo", help="only of this algorithm")
    parser.add_argument("--env", help="only on this environment")
    repeated(
        parser,
        "--filter",
        "TEXT",
        help="words and conditions as in the window: 'cart return>400 learning_rate=0.01 age<2d'",
    )
    number(parser, "--limit", type=values.count, default=LISTED, help=f"at most so many ({LISTED})")
    flag(parser, "--all", help="without a limit")
    return parser.with_general(json="a list of runs")


def queue_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "queue",
        "[RUN --priority N | --before RUN | --first] [options]",
        "The live runs with what they hold, then the waiting ones in the order in which they will start. A\n"
        "small run may start before a larger one when that delays nobody. With RUN, change its place.",
        examples=("", "01K9ZX --first", "01K9ZX --before 01K9ZW", "01K9ZX --priority 10"),
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help=f"the waiting run to move: {RUN_HELP}")
    place = parser.add_mutually_exclusive_group()
    number(
        place,
        "--priority",
        type=values.priority,
        help="the higher starts first, from -1000 to 1000; runs of one priority keep their order",
    )
    place.add_argument("--before", metavar="RUN", help="right before this waiting run, with its priority")
    flag(place, "--first", help="before all others")
    return parser.with_general(json="an object with the live and the waiting runs and what is reserved")


def show_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "show",
        "RUN [options]",
        "Everything about one run: how it stands, its numbers, its history, its files.",
        examples=("last", "01K9ZW --json"),
    )
    parser.add_runs("run", nargs=None)
    return parser.with_general(json="the run with history, headline, process ids, losses and files")


def watch_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "watch",
        "RUN... [options]",
        "Follow runs live until they end. Ctrl-C leaves; the runs go on.",
        examples=("last", "last --frames", "01K9ZW 01K9ZX"),
    )
    parser.add_runs()
    flag(parser, "--frames", help="show the environments of one run being played, in the terminal")
    return parser.with_general(json="a line for each update")


def snapshot_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "snapshot",
        "RUN FILE.png [options]",
        "Save what the environments of a run look like now, as a PNG picture.",
        examples=("last now.png",),
    )
    parser.add_runs("run", nargs=None)
    parser.add_argument("file", metavar="FILE.png", type=Path, help="where the picture goes")
    return parser.with_general(json="where the picture is, its size and the numbers beside it")


def record_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "record",
        "RUN FILE.mp4 [options]",
        "Save a video of the environments of a run, as they are played now. Ctrl-C ends it early.",
        examples=("last film.mp4 --seconds 30",),
    )
    parser.add_runs("run", nargs=None)
    parser.add_argument("file", metavar="FILE.mp4", type=Path, help="where the video goes")
    number(parser, "--seconds", type=values.count, default=10, help="how long it is (10)")
    return parser.with_general(json="where the video is, how long it is and how many pictures it has")


def policies_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "policies",
        "[options]",
        "List every trained model and full checkpoint, those of the newest run first.",
        examples=("", "--algo ppo --env CartPole-v1 --best", "--run 01K9ZW --json"),
    )
    parser.add_argument("--run", metavar="RUN", help="only of runs whose id begins so")
    parser.add_argument("--algo", help="only of this algorithm")
    parser.add_argument("--env", help="only of this environment")
    flag(parser, "--best", help="only the best of each run")
    most = LISTED_POLICIES
    number(parser, "--limit", type=values.count, default=most, help=f"at most so many ({most})")
    flag(parser, "--all", help="without a limit")
    return parser.with_general(json="a list of policies, with their paths")


def logs_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "logs",
        "RUN [options]",
        "What a run has printed.",
        examples=("last", "last --stderr -n 30", "01K9ZW -f"),
    )
    parser.add_runs("run", nargs=None)
    which = parser.add_mutually_exclusive_group()
    for name, text in (
        ("stderr", "its error output instead of its standard output"),
        ("events", "its lifecycle events"),
        ("supervisor", "what the process that watches over it has logged"),
    ):
        which.add_argument(f"--{name}", dest="stream", action="store_const", const=name, help=text)
    parser.set_defaults(stream="stdout")
    flag(parser, "-f", "--follow", help="go on with new lines until the run ends")
    number(parser, "-n", "--lines", type=values.count, help="only the last N lines")
    flag(
        parser,
        "--raw",
        help="byte by byte, also the colours and other escape sequences that a terminal would obey",
    )
    return parser.with_general(json="an object with the lines; with -f a line for each")


def tensorboard_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "tensorboard",
        "RUN... [options]",
        "Show the curves of runs in TensorBoard, also while they train. Ctrl-C ends it.",
        examples=("last", "01K9ZW 01K9ZX --port 6007"),
    )
    parser.add_runs()
    number(parser, "--port", type=values.port, help=f"{USUAL_PORT} or a free one by default")
    return parser.with_general()


def tag_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "tag",
        "RUN... [--add TAG] [--remove TAG] [--name NAME] [--notes TEXT] [options]",
        "Change tags, name and notes of runs, in whatever state they are. Without a change, tell them.",
        examples=("last", "last --add best", "01K9ZW 01K9ZX --add paper --remove draft --name final"),
    )
    parser.add_runs()
    repeated(parser, "--add", "TAG", help="a tag that they get")
    repeated(parser, "--remove", "TAG", help="a tag that they lose")
    parser.add_argument("--name", help="how lists call the run")
    parser.add_argument("--notes", metavar="TEXT", help="kept with the run; an empty text takes them away")
    return parser.with_general(json="the runs with their labels")


def rm_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "rm",
        "RUN... [options]",
        "Remove ended runs: their folders with everything in them, and their place in the list. What they "
        "printed can still be read (`logs RUN`) until `gc` removes it.",
        examples=("01K9ZW", "last --yes"),
    )
    parser.add_runs()
    flag(parser, "-y", "--yes", help="do not ask")
    return parser.with_general()


def gc_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "gc",
        "[options]",
        f"Remove ended runs by rule; without options those that ended more than {USUAL_DAYS} days ago.\n"
        "A run goes when every rule applies to it. What belongs to no run goes too: old logs of removed\n"
        "runs, links that lead nowhere, unfinished files. Live runs are never touched. gc tells what would\n"
        "go and how much that frees, and asks.",
        examples=(
            "--dry-run",
            "--outcome failed,cancelled --older-than 2d",
            "--keep 50 --not-tag paper --yes",
        ),
    )
    parser.add_argument(
        "--older-than",
        type=values.age,
        default=USUAL_DAYS * 86_400.0,
        metavar="AGE",
        help=f"ended so long ago: 30d, 12h, 2w, or 0 for any ({USUAL_DAYS}d)",
    )
    number(parser, "--keep", type=values.natural, default=0, help="the newest N ended runs always stay")
    repeated(parser, "--outcome", "LIST", help=f"only these: {','.join(Outcome)}")
    repeated(parser, "--tag", "TAG", help="only with this tag")
    repeated(parser, "--not-tag", "TAG", help="none with this tag")
    flag(parser, "--dry-run", help="only tell what would go")
    flag(parser, "-y", "--yes", help="do not ask")
    return parser.with_general(json="an object with what goes, and whether it is gone")


def extras_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "extras",
        "[list | install NAMES] [options]",
        "List or install the optional sets of packages that some environments and trackers need.",
        examples=("", "install mujoco", "install minigrid,video"),
    )
    actions = " or ".join(EXTRAS_ACTIONS)
    parser.add_argument("action", metavar="ACTION", nargs="?", default="list", help=f"{actions} (list)")
    parser.add_argument("names", metavar="NAMES", nargs="*", help="the sets, separated by commas or spaces")
    return parser.with_general(json="a list of the sets with their packages")


def doctor_parser(argv: Sequence[str]) -> Parser:
    return Parser(
        "doctor",
        "[options]",
        "Check the installation: what is there, what is missing, and the command that gets it.\n"
        "Leaves with 1 when something that every run needs is broken.",
    ).with_general(json="an object with all findings")


def daemon_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "daemon",
        "[start|stop|status] [options]",
        "The daemon queues runs and keeps their state. It starts by itself when it is needed, and stopping\n"
        "it ends no run.",
        examples=("status", "stop", "start --port 50060"),
    )
    actions = ", ".join(DAEMON_ACTIONS)
    parser.add_argument("action", metavar="ACTION", nargs="?", default="status", help=f"{actions} (status)")
    number(parser, "--port", type=values.port, help="start: listen on this port only; 0 takes any free one")
    return parser.with_general(json="whether it runs, its address, version and load")
