"""What each command takes that looks at runs or keeps them in order; those that start runs are in `starting`.

Nothing heavy is imported here: a page of help comes at once.
"""

from __future__ import annotations

from pathlib import Path

from mosaic.cli import values
from mosaic.cli.parser import RUN, RUN_HELP, RUNS, flag, number, one_of, option, page, repeated
from mosaic.contract.fsm import Outcome
from mosaic.contract.paths import named_path
from mosaic.contract.run_filter import GROUPINGS, RUN_STATES
from mosaic.contract.words import STATES_BY_NAME

LISTED = 20
LISTED_POLICIES = 30
USUAL_DAYS = 30
USUAL_PORT = 6006
DAEMON_ACTIONS = ("start", "stop", "status")
AXES = ("steps", "time")
STATISTICS = ("mean", "iqm")
STYLES = ("paper", "slides")
EXTRAS_ACTIONS = ("list", "install")
FILTER_ACTIONS = ("list", "save", "rm")
SWEEP_ACTIONS = ("list", "show", "init", "resume", "extend", "train-best", "dashboard")

_ALL = flag("--all", "without a limit")
_YES = flag("-y --yes", "do not ask")
_STATES = tuple(RUN_STATES)
_ONLY_TAG = repeated("--tag", "TAG", "only with this tag")
_WANTED = option("wanted", "RUN", "run ids, 'last', tags, @NAME of a filter, words and conditions", nargs="+")
_COMPARED = (
    _WANTED,
    option("--metric", "NAME", "this curve in place of the return, such as losses/value_loss"),
    option("--group-by", "HOW", f"{', '.join(GROUPINGS)} (config)", choices=GROUPINGS, default=GROUPINGS[0]),
)

PAGES = {
    "scripts": page(
        "[options]",
        "List the shell scripts that train by name: those that come with MOSAIC, and those in the folder "
        "that $MOSAIC_CUSTOM_SCRIPTS_DIR names. Any other script trains by its path.",
        ("", "--json"),
        json="a list of scripts with what their heads say",
    ),
    "phase": page(
        "N [TEXT]",
        "Inside a script that runs as a run: say which phase begins. It appears wherever the run is shown.",
        ('1 "empty rooms"', '2 "rooms with a door"'),
        option("number", "N", "the phase's number, from 1", type=values.count),
        option("text", "TEXT", "what the script does in it, in a few words", nargs="*"),
    ),
    "sweep": page(
        "FILE.toml | list | init ALGO ENV | show|resume|extend|train-best|dashboard SWEEP [options]",
        "Search for good parameters with Optuna. A sweep is a run whose trials are runs of the queue: it\n"
        "goes on after any crash, and pause, resume and cancel mean its trials too. SWEEP is the id of one,\n"
        "the beginning of an id, or 'last'; show also takes the file or URL of a study made elsewhere.\n"
        "resume finishes the budget of a sweep that was cancelled or has failed, extend adds trials to it,\n"
        'and train-best trains with the best parameters. With kind = "pbt" a population is trained instead\n'
        "of a search: show draws who copied whom.",
        (
            "init ppo CartPole-v1 -o sweep.toml",
            "sweep.toml --dry-run",
            "sweep.toml --set trials=50 --set sampler.name=random",
            "show last",
            "extend last --trials 20",
            "train-best last --seeds 11-15",
        ),
        option("words", "WHAT", f"the sweep file, or {', '.join(SWEEP_ACTIONS)}", nargs="+"),
        repeated(
            "--set",
            "NAME=VALUE",
            "a setting of the file, such as space.gamma=[0.9,0.99]",
            type=values.setting,
        ),
        number("--trials", values.count, "how many trials; extend: how many more"),
        option("--seeds", "LIST", "the seeds of a trial, or of train-best: 1-5 or 1,3,7", type=values.seeds),
        number("--total-timesteps --steps", values.count, "of each run"),
        flag("--detach", "start and return at once"),
        flag("--dry-run", "check all and tell what would run; --json prints the run config"),
        number("--trial", values.natural, "train-best: this trial in place of the best"),
        option("--study", "NAME", "show: this study of a storage that holds several"),
        number("--limit", values.count, "show: at most so many trials (20)"),
        _ALL,
        option("-o --output", "FILE", "init: the file to write (else it is printed)", type=named_path),
        number("--port", values.port, "dashboard: the port that it listens on (8080)"),
        json="the sweep's run, its study with all trials, importances, and the lineage of a population",
    ),
    "benchmark": page(
        "FILE.toml | list | show NAME [options]",
        "Train algorithms on environments with several seeds, wait, and write the report. A benchmark is a\n"
        "run whose runs are ordinary ones in the queue: it goes on after any crash, and pause, resume and\n"
        "cancel mean its runs too. The same file again trains what is missing: what failed, or new seeds.\n"
        "The NAME is that of a benchmark; its id or 'last' will do as well.",
        (
            "bench.toml --dry-run",
            "bench.toml -o report.html --markdown table.md",
            "bench.toml --set seeds=1-10 --detach",
            "show last",
        ),
        option("words", "WHAT", "the benchmark file, list, or show and a NAME", nargs="+"),
        repeated(
            "--set",
            "NAME=VALUE",
            "a setting of the file, such as total_timesteps=50_000",
            type=values.setting,
        ),
        flag("--detach", "start and return at once"),
        flag("--dry-run", "check all and tell what would run; --json prints the run config"),
        option("-o --output", "FILE.html", "the report (else in the benchmark's folder)", type=named_path),
        option("--markdown", "FILE", "the tables as Markdown", type=named_path),
        option("--csv", "FILE", "a line for each run", type=named_path),
        json="the benchmark's run, each cell with mean and IQM, aggregates, improvements and profiles",
    ),
    "pause": page(
        "RUN... [options]",
        "Stop all processes of runs where they are. They keep their memory, CPUs and GPUs, and paused time\n"
        "does not count against --max-minutes. Returns when they stand still.",
        ("last", "01K9ZW 01K9ZX"),
        RUNS,
        json="a list of the runs",
    ),
    "resume": page(
        "RUN... [options]",
        "Let paused runs go on exactly where they were.",
        ("last", "01K9ZW 01K9ZX"),
        RUNS,
        json="a list of the runs",
    ),
    "cancel": page(
        "RUN... | --all [options]",
        "End runs that wait or train, and wait until their processes are gone.",
        ("last", "01K9ZW 01K9ZX --no-wait", "--all"),
        option("runs", "RUN", RUN_HELP, nargs="*"),
        flag("--all", "every run that waits or lives"),
        flag("--no-wait", "ask them to end and return at once"),
    ),
    "gui": page(
        "[options]",
        "Open the window: train, watch, compare, resume and play. Closing it stops no run.",
        ("", "--var ~/experiments"),
    ),
    "runs": page(
        "[@NAME...] [WORD...] [options]",
        "List runs, newest first: all, those of a saved filter, or those that fit words and conditions.",
        (
            "",
            "@good --limit 50",
            "'algo=ppo return>400 learning_rate=0.01'",
            "--columns id,return,learning_rate",
        ),
        option("wanted", "WORD", "words and conditions as in the window, or @NAME of a filter", nargs="*"),
        repeated("--state --status", "STATE", f"only these: {', '.join(STATES_BY_NAME)}"),
        _ONLY_TAG,
        option("--algo", "ALGO", "only of this algorithm"),
        option("--env", "ENV", "only on this environment"),
        repeated(
            "--filter",
            "TEXT",
            "words and conditions as in the window: 'cart return>400 learning_rate=0.01 age<2d'",
        ),
        option(
            "--columns",
            "LIST",
            "these columns, with commas between: what conditions can name, any parameter, any curve such as "
            "losses/value_loss",
        ),
        number("--limit", values.count, f"at most so many ({LISTED})", default=LISTED),
        _ALL,
        json="a list of runs",
    ),
    "compare": page(
        "RUN|TAG|@NAME|WORD... [options]",
        "Compare runs: seeds of one configuration as one row, with mean return and interval, what differs,\n"
        "and the learning curves. Runs are named by ids, tags, saved filters, or words and conditions.",
        ("paper", "'algo=ppo env=CartPole-v1'", "01K9ZW 01K9ZX --metric losses/value_loss", "@good --x time"),
        *_COMPARED,
        option("--x", "AXIS", "steps or time (steps)", choices=AXES, default=AXES[0]),
        json="the groups with their final numbers and the settings that differ",
    ),
    "plot": page(
        "RUN|TAG|@NAME|WORD... -o FILE [options]",
        "Draw learning curves ready for a paper: a line for each configuration, mean over its seeds with\n"
        "its 95 % bootstrap interval, a panel for each environment. Needs `extras install plots`.",
        (
            "paper -o curve.pdf",
            "'algo=ppo' -o curve.svg --statistic iqm --smooth 0.1 --size 12x8cm",
            "paper -o curve.png --style slides --x time --title 'PPO'",
        ),
        *_COMPARED,
        option("-o --output", "FILE", "the figure: .svg, .png or .pdf", type=Path, required=True),
        option("--x", "AXIS", "steps or time (steps)", choices=AXES, default=AXES[0]),
        option(
            "--statistic", "NAME", "mean or iqm over seeds (mean)", choices=STATISTICS, default=STATISTICS[0]
        ),
        option(
            "--smooth",
            "SHARE",
            "of the axis that a point is the mean of (0.05)",
            type=values.fraction,
            default=0.05,
        ),
        option("--size", "WxH", "of the whole: 6x4 in inches, 15x10cm", type=values.size),
        option("--title", "TEXT", "what stands on top", default=""),
        option("--style", "NAME", "paper or slides (paper)", choices=STYLES, default=STYLES[0]),
        json="where the figure is, its metric, groups and runs",
    ),
    "report": page(
        "RUN|TAG|@NAME|WORD... -o FILE.html [options]",
        "Write one page about runs that needs nothing beside it: curves and results with intervals,\n"
        "aggregates over environments, settings, code version, hardware, evaluations, pictures of films,\n"
        "and the commands that make the same runs again.",
        ("paper -o report.html", "'algo=ppo return>400' -o report.html --title 'PPO on CartPole'"),
        *_COMPARED,
        option("-o --output", "FILE.html", "where the report goes", type=Path, required=True),
        option("--title", "TEXT", "what stands on top", default=""),
        json="where the report is, its runs and its size",
    ),
    "export": page(
        "RUN|TAG|@NAME|WORD... -o FILE.tar [options]",
        "Write ended runs into one file: config, history, logs, curves, models, checkpoints, videos, with\n"
        "a sum of each. `import` takes it in on any machine. No secret is in it.",
        ("last -o run.tar", "paper -o paper.tar.gz --without-checkpoints", "01K9ZW 01K9ZX -o two.tar.zst"),
        _WANTED,
        option(
            "-o --output",
            "FILE",
            "the archive: .tar, .tar.gz (smaller) or .tar.zst (smaller and fast)",
            type=Path,
            required=True,
        ),
        flag("--without-checkpoints", "leave the full checkpoints out: models stay, resuming does not work"),
        json="the archive, its runs, files and bytes",
    ),
    "import": page(
        "FILE [options]",
        "Take in the runs of an archive that `export` made. They keep their ids, and paths in their files\n"
        "lead to where they are now. All of them come, or none and a sentence that says why.",
        ("run.tar", "run.tar.gz --as-new"),
        option("file", "FILE", "the archive", type=Path),
        flag("--as-new", "give the runs new ids, where the old ones are taken"),
        json="a list of the runs with their old and new ids",
    ),
    "filters": page(
        "[save NAME WORD... | rm NAME...] [options]",
        "Filters of runs under names of your own, the same here and in the window. `runs @NAME` uses one.",
        ("", "save good 'algo=ppo return>400'", "save broken --state failed", "rm good"),
        option("action", "ACTION", f"{', '.join(FILTER_ACTIONS)} (list)", nargs="?", default="list"),
        option("words", "NAME", "its name, and for save what it looks for", nargs="*"),
        option("--state", "STATE", f"save: only runs that are {', '.join(_STATES[1:])}", choices=_STATES),
        json="a list of filters",
    ),
    "queue": page(
        "[RUN --priority N | --before RUN | --first] [options]",
        "The live runs with what they hold, then the waiting ones in the order in which they will start. A\n"
        "small run may start before a larger one when that delays nobody. With RUN, change its place.",
        ("", "01K9ZX --first", "01K9ZX --before 01K9ZW", "01K9ZX --priority 10"),
        option("run", "RUN", f"the waiting run to move: {RUN_HELP}", nargs="?"),
        one_of(
            number(
                "--priority",
                values.priority,
                "the higher starts first, from -1000 to 1000; runs of one priority keep their order",
            ),
            option("--before", "RUN", "right before this waiting run, with its priority"),
            flag("--first", "before all others"),
        ),
        json="an object with the live and the waiting runs and what is reserved",
    ),
    "show": page(
        "RUN [options]",
        "Everything about one run: how it stands, its numbers, its history, its files.",
        ("last", "01K9ZW --json"),
        RUN,
        json="the run with history, headline, process ids, losses and files",
    ),
    "watch": page(
        "RUN... [options]",
        "Follow runs live until they end. Ctrl-C leaves; the runs go on.",
        ("last", "last --frames", "01K9ZW 01K9ZX"),
        RUNS,
        flag("--frames", "show the environments of one run being played, in the terminal"),
        json="a line for each update",
    ),
    "snapshot": page(
        "RUN FILE.png [options]",
        "Save what the environments of a run look like now, as a PNG picture.",
        ("last now.png",),
        RUN,
        option("file", "FILE.png", "where the picture goes", type=Path),
        json="where the picture is, its size and the numbers beside it",
    ),
    "record": page(
        "RUN FILE.mp4 [options]",
        "Save a video of the environments of a run, as they are played now. Ctrl-C ends it early.",
        ("last film.mp4 --seconds 30",),
        RUN,
        option("file", "FILE.mp4", "where the video goes", type=Path),
        number("--seconds", values.count, "how long it is (10)", default=10),
        json="where the video is, how long it is and how many pictures it has",
    ),
    "policies": page(
        "[options]",
        "List every trained model and full checkpoint, those of the newest run first.",
        ("", "--algo ppo --env CartPole-v1 --best", "--run 01K9ZW --json"),
        option("--run", "RUN", "only of runs whose id begins so"),
        option("--algo", "ALGO", "only of this algorithm"),
        option("--env", "ENV", "only of this environment"),
        flag("--best", "only the best of each run"),
        number("--limit", values.count, f"at most so many ({LISTED_POLICIES})", default=LISTED_POLICIES),
        _ALL,
        json="a list of policies, with their paths",
    ),
    "envs": page(
        "[FILTER...] [options]",
        "List the environments that are known, by family: whether they are installed or the command that\n"
        "installs them, what an agent sees and does there, which algorithms train on them, and what can "
        "step them. Any other environment trains by its own id, as module:EnvId.",
        ("", "cart", "--family atari --algo ppo_atari_envpool", "--installed --json"),
        option("filter", "FILTER", "only those with all these words in their id or family", nargs="*"),
        option("--family", "NAME", "only of this family, such as classic or atari"),
        option("--algo", "NAME", "only those on which this algorithm trains"),
        flag("--installed", "only those that are installed"),
        json="a list of environments",
    ),
    "logs": page(
        "RUN [options]",
        "What a run has printed.",
        ("last", "last --stderr -n 30", "01K9ZW -f"),
        RUN,
        one_of(
            *(
                flag(f"--{name}", text, dest="stream", action="store_const", const=name, default="stdout")
                for name, text in (
                    ("stderr", "its error output instead of its standard output"),
                    ("events", "its lifecycle events"),
                    ("supervisor", "what the process that watches over it has logged"),
                )
            )
        ),
        flag("-f --follow", "go on with new lines until the run ends"),
        number("-n --lines", values.count, "only the last N lines"),
        flag("--raw", "byte by byte, also the colours and other escape sequences that a terminal would obey"),
        json="an object with the lines; with -f a line for each",
    ),
    "tensorboard": page(
        "RUN... [options]",
        "Show the curves of runs in TensorBoard, also while they train. Ctrl-C ends it.",
        ("last", "01K9ZW 01K9ZX --port 6007"),
        RUNS,
        number("--port", values.port, f"{USUAL_PORT} or a free one by default"),
    ),
    "tag": page(
        "RUN... [--add TAG] [--remove TAG] [--name NAME] [--notes TEXT] [options]",
        "Change tags, name and notes of runs, in whatever state they are. Without a change, tell them.",
        ("last", "last --add best", "01K9ZW 01K9ZX --add paper --remove draft --name final"),
        RUNS,
        repeated("--add", "TAG", "a tag that they get"),
        repeated("--remove", "TAG", "a tag that they lose"),
        option("--name", "NAME", "how lists call the run"),
        option("--notes", "TEXT", "kept with the run; an empty text takes them away"),
        json="the runs with their labels",
    ),
    "push": page(
        "RUN [--to USER/MODEL] [options]",
        "Upload the model of an ended run to the Hugging Face hub: weights, what rebuilds the policy, the\n"
        "scores of its evaluation, curves, a video where there is one, and a page that tells it all. The\n"
        "token is taken from HF_TOKEN or from the hub's own login. What is there of an earlier upload is\n"
        "replaced.",
        ("last", "01K9ZW:best --to me/lunar-lander --private"),
        option("run", "RUN", f"{RUN_HELP}; with ':best' its best model"),
        option(
            "--to",
            "USER/MODEL",
            "what it is called there, or MODEL alone; without it as CleanRL calls its models, "
            "ENV-NAME-seedN, and with USER/ the same of another user or organization",
        ),
        flag("--private", "nobody else may see it; of a model that is there already nothing changes"),
        json="an object with the run's id, the model's name and its address",
    ),
    "pull": page(
        "USER/MODEL [options]",
        "Get a model from the Hugging Face hub: one that `push` has uploaded, or one of CleanRL's own.\n"
        "`eval`, `play` and `train --resume` then take its name, and `policies` lists it. Nothing that is\n"
        "in it is run.",
        ("cleanrl/CartPole-v1-dqn-seed1", "me/lunar-lander --revision v2"),
        option("model", "USER/MODEL", "its name, or the address of its page"),
        option("--revision", "NAME", "a branch, tag or commit (the newest)"),
        json="an object with what the model is of and the path of its file",
    ),
    "rm": page(
        "RUN... [options]",
        "Remove ended runs: their folders with everything in them, and their place in the list. What they "
        "printed can still be read (`logs RUN`) until `gc` removes it.",
        ("01K9ZW", "last --yes"),
        RUNS,
        _YES,
    ),
    "gc": page(
        "[options]",
        f"Remove ended runs by rule; without options those that ended more than {USUAL_DAYS} days ago.\n"
        "A run goes when every rule applies to it. What belongs to no run goes too: old logs of removed\n"
        "runs, links that lead nowhere, unfinished files. Live runs are never touched. gc tells what would\n"
        "go and how much that frees, and asks.",
        ("--dry-run", "--outcome failed,cancelled --older-than 2d", "--keep 50 --not-tag paper --yes"),
        option(
            "--older-than",
            "AGE",
            f"ended so long ago: 30d, 12h, 2w, or 0 for any ({USUAL_DAYS}d)",
            type=values.age,
            default=USUAL_DAYS * 86_400.0,
        ),
        number("--keep", values.natural, "the newest N ended runs always stay", default=0),
        repeated("--outcome", "LIST", f"only these: {','.join(Outcome)}"),
        _ONLY_TAG,
        repeated("--not-tag", "TAG", "none with this tag"),
        flag("--dry-run", "only tell what would go"),
        _YES,
        json="an object with what goes, and whether it is gone",
    ),
    "extras": page(
        "[list | install NAMES] [options]",
        "List or install the optional sets of packages that some environments and trackers need.",
        ("", "install mujoco", "install minigrid,video"),
        option("action", "ACTION", f"{' or '.join(EXTRAS_ACTIONS)} (list)", nargs="?", default="list"),
        option("names", "NAMES", "the sets, separated by commas or spaces", nargs="*"),
        json="a list of the sets with their packages",
    ),
    "doctor": page(
        "[options]",
        "Check the installation: what is there, what is missing, and the command that gets it.\n"
        "Leaves with 1 when something that every run needs is broken.",
        (),
        json="an object with all findings",
    ),
    "daemon": page(
        "[start|stop|status] [options]",
        "The daemon queues runs and keeps their state. It starts by itself when it is needed, and stopping\n"
        "it ends no run.",
        ("status", "stop", "start --port 50060"),
        option("action", "ACTION", f"{', '.join(DAEMON_ACTIONS)} (status)", nargs="?", default="status"),
        number("--port", values.port, "start: listen on this port only; 0 takes any free one"),
        json="whether it runs, its address, version and load",
    ),
}
"""What makes the parser of each, by its name."""
