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

_ALL = flag("--all", "no limit")
_YES = flag("-y --yes", "do not ask")
_STATES = tuple(RUN_STATES)
_ONLY_TAG = repeated("--tag", "TAG", "only with this tag")
_WANTED = option(
    "wanted", "RUN", ("run ids, 'last', tags, @NAME of a saved filter, words and conditions"), nargs="+"
)
_COMPARED = (
    _WANTED,
    option("--metric", "NAME", "compare this curve instead of the return, such as losses/value_loss"),
    option(
        "--group-by",
        "HOW",
        (f"what forms a group: {', '.join(GROUPINGS)} (config)"),
        choices=GROUPINGS,
        default=GROUPINGS[0],
    ),
)

PAGES = {
    "scripts": page(
        "[options]",
        "List the shell scripts that `train` can start by name: those included in MOSAIC, and those in "
        "the folder that $MOSAIC_CUSTOM_SCRIPTS_DIR names. Start other scripts by their path.",
        ("", "--json"),
        json="a list of scripts with the metadata of their heads",
    ),
    "phase": page(
        "N [TEXT]",
        "Announce a phase, inside a script that runs as a run. It appears wherever the run is shown.",
        ('1 "empty rooms"', '2 "rooms with a door"'),
        option("number", "N", "the phase's number, from 1", type=values.count),
        option("text", "TEXT", "a few words about the phase", nargs="*"),
    ),
    "sweep": page(
        "FILE.toml | list | init ALGO ENV | show|resume|extend|train-best|dashboard SWEEP [options]",
        "Search for good parameters with Optuna. A sweep is itself a run, and its trials are runs in the\n"
        "queue: it continues after any crash, and pause, resume and cancel also apply to its trials. "
        "SWEEP is\n"
        "an id, the beginning of one, or 'last'; show also takes the file or URL of a study made "
        "elsewhere.\n"
        "resume finishes the budget of a sweep that was cancelled or failed, extend adds trials to it,\n"
        'and train-best trains with the best parameters. With kind = "pbt" a population is trained '
        "instead,\n"
        "and show draws its lineage.",
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
        number("--trials", values.count, "the number of trials; extend: additional trials"),
        option(
            "--seeds", "LIST", ("the seeds of each trial, or of train-best: 1-5 or 1,3,7"), type=values.seeds
        ),
        number("--total-timesteps --steps", values.count, "steps of each run"),
        flag("--detach", "start and return at once"),
        flag("--dry-run", "check everything and show what would run; --json prints the run config"),
        number("--trial", values.natural, "train-best: use this trial instead of the best"),
        option("--study", "NAME", "show: the study's name in a storage that holds several"),
        number("--limit", values.count, "show: at most this many trials (20)"),
        _ALL,
        option("-o --output", "FILE", "init: the file to write (default: print it)", type=named_path),
        number("--port", values.port, "dashboard: the port to listen on (8080)"),
        json="the sweep's run, its study with all trials, importances, and the lineage of a population",
    ),
    "benchmark": page(
        "FILE.toml | list | show NAME [options]",
        "Train algorithms on environments with several seeds, wait, and write the report. A benchmark is\n"
        "itself a run, and its trainings are runs in the queue: it continues after any crash, and pause, "
        "resume\n"
        "and cancel also apply to its runs. The same file again trains only what is missing: failed "
        "runs, new\n"
        "seeds. NAME is the name of a benchmark, its id, or 'last'.",
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
        flag("--dry-run", "check everything and show what would run; --json prints the run config"),
        option(
            "-o --output", "FILE.html", ("the report (default: in the benchmark's folder)"), type=named_path
        ),
        option("--markdown", "FILE", "write the tables as Markdown", type=named_path),
        option("--csv", "FILE", "write a line for each run", type=named_path),
        json="the benchmark's run, each cell with mean and IQM, aggregates, improvements and profiles",
    ),
    "pause": page(
        "RUN... [options]",
        "Pause runs by stopping all their processes. They keep their memory, CPUs and GPUs, and paused "
        "time\n"
        "does not count against --max-minutes. Returns when all processes have stopped.",
        ("last", "01K9ZW 01K9ZX"),
        RUNS,
        json="a list of the runs",
    ),
    "resume": page(
        "RUN... [options]",
        "Continue paused runs exactly where they were.",
        ("last", "01K9ZW 01K9ZX"),
        RUNS,
        json="a list of the runs",
    ),
    "cancel": page(
        "RUN... | --all [options]",
        "End waiting or training runs, and wait until their processes are gone.",
        ("last", "01K9ZW 01K9ZX --no-wait", "--all"),
        option("runs", "RUN", RUN_HELP, nargs="*"),
        flag("--all", "every waiting or live run"),
        flag("--no-wait", "return at once, without waiting for their end"),
    ),
    "gui": page(
        "[options]",
        "Open the window: train, watch, compare, resume and play. Closing it stops no run.",
        ("", "--var ~/experiments"),
    ),
    "runs": page(
        "[@NAME...] [WORD...] [options]",
        "List runs, newest first: all runs, those of a saved filter, or those that match words and "
        "conditions.",
        (
            "",
            "@good --limit 50",
            "'algo=ppo return>400 learning_rate=0.01'",
            "--columns id,return,learning_rate",
        ),
        option(
            "wanted", "WORD", ("words and conditions as in the window, or @NAME of a saved filter"), nargs="*"
        ),
        repeated("--state --status", "STATE", f"only these states: {', '.join(STATES_BY_NAME)}"),
        _ONLY_TAG,
        option("--algo", "ALGO", "only this algorithm"),
        option("--env", "ENV", "only this environment"),
        repeated(
            "--filter",
            "TEXT",
            "words and conditions as in the window: 'cart return>400 learning_rate=0.01 age<2d'",
        ),
        option(
            "--columns",
            "LIST",
            "columns to show, separated by commas: anything that conditions can name, any parameter, any "
            "curve such as losses/value_loss",
        ),
        number("--limit", values.count, f"at most this many ({LISTED})", default=LISTED),
        _ALL,
        json="a list of runs",
    ),
    "compare": page(
        "RUN|TAG|@NAME|WORD... [options]",
        "Compare runs: one row for all seeds of a configuration, with mean return and interval, what "
        "differs,\n"
        "and the learning curves. Select runs by ids, tags, saved filters, or words and conditions.",
        ("paper", "'algo=ppo env=CartPole-v1'", "01K9ZW 01K9ZX --metric losses/value_loss", "@good --x time"),
        *_COMPARED,
        option("--x", "AXIS", "steps or time (steps)", choices=AXES, default=AXES[0]),
        json="the groups with their final numbers and the settings that differ",
    ),
    "plot": page(
        "RUN|TAG|@NAME|WORD... -o FILE [options]",
        "Draw learning curves for a paper: a line for each configuration, the mean over its seeds with\n"
        "a 95 % bootstrap interval, and a panel for each environment. Needs `extras install plots`.",
        (
            "paper -o curve.pdf",
            "'algo=ppo' -o curve.svg --statistic iqm --smooth 0.1 --size 12x8cm",
            "paper -o curve.png --style slides --x time --title 'PPO'",
        ),
        *_COMPARED,
        option("-o --output", "FILE", "the figure: .svg, .png or .pdf", type=Path, required=True),
        option("--x", "AXIS", "steps or time (steps)", choices=AXES, default=AXES[0]),
        option(
            "--statistic",
            "NAME",
            ("mean or iqm over the seeds (mean)"),
            choices=STATISTICS,
            default=STATISTICS[0],
        ),
        option(
            "--smooth",
            "SHARE",
            "the smoothing window as a share of the axis (0.05)",
            type=values.fraction,
            default=0.05,
        ),
        option("--size", "WxH", "the size of the figure: 6x4 in inches, 15x10cm", type=values.size),
        option("--title", "TEXT", "the title", default=""),
        option("--style", "NAME", "paper or slides (paper)", choices=STYLES, default=STYLES[0]),
        json="the figure's path, metric, groups and runs",
    ),
    "report": page(
        "RUN|TAG|@NAME|WORD... -o FILE.html [options]",
        "Write a self-contained HTML report about runs: curves and results with intervals, aggregates "
        "over\n"
        "environments, settings, code version, hardware, evaluations, pictures from videos, and the "
        "commands\n"
        "that repeat the same runs.",
        ("paper -o report.html", "'algo=ppo return>400' -o report.html --title 'PPO on CartPole'"),
        *_COMPARED,
        option("-o --output", "FILE.html", "the report's path", type=Path, required=True),
        option("--title", "TEXT", "the title", default=""),
        json="the report's path, runs and size",
    ),
    "export": page(
        "RUN|TAG|@NAME|WORD... -o FILE.tar [options]",
        "Export ended runs to an archive: config, history, logs, curves, models, checkpoints and videos, "
        "with\n"
        "checksums and without secrets. `import` imports it on any machine.",
        ("last -o run.tar", "paper -o paper.tar.gz --without-checkpoints", "01K9ZW 01K9ZX -o two.tar.zst"),
        _WANTED,
        option(
            "-o --output",
            "FILE",
            "the archive: .tar, .tar.gz (smaller) or .tar.zst (smaller and faster)",
            type=Path,
            required=True,
        ),
        flag("--without-checkpoints", "leave out full checkpoints: models stay, but resuming does not work"),
        json="the archive's path, runs, files and bytes",
    ),
    "import": page(
        "FILE [options]",
        "Import the runs of an archive made by `export`. They keep their ids, and paths in their files "
        "are\n"
        "adjusted. Either all runs are imported or none.",
        ("run.tar", "run.tar.gz --as-new"),
        option("file", "FILE", "the archive", type=Path),
        flag("--as-new", "give runs new ids if the old ones are taken"),
        json="a list of the runs with their old and new ids",
    ),
    "filters": page(
        "[save NAME WORD... | rm NAME...] [options]",
        "List, save and remove named filters of runs, which the window shows too. `runs @NAME` uses one.",
        ("", "save good 'algo=ppo return>400'", "save broken --state failed", "rm good"),
        option("action", "ACTION", f"{', '.join(FILTER_ACTIONS)} (list)", nargs="?", default="list"),
        option("words", "NAME", "the filter's name and, for save, its words and conditions", nargs="*"),
        option("--state", "STATE", f"save: only runs that are {', '.join(_STATES[1:])}", choices=_STATES),
        json="a list of filters",
    ),
    "queue": page(
        "[RUN --priority N | --before RUN | --first] [options]",
        "Show the live runs with the resources that they hold, then the waiting runs in the order in "
        "which they\n"
        "will start. A small run may start before a larger one if that delays no other run. With RUN, "
        "change\n"
        "its place.",
        ("", "01K9ZX --first", "01K9ZX --before 01K9ZW", "01K9ZX --priority 10"),
        option("run", "RUN", f"the waiting run to move: {RUN_HELP}", nargs="?"),
        one_of(
            number(
                "--priority",
                values.priority,
                "from -1000 to 1000, the highest starts first; runs with the same priority keep their order",
            ),
            option("--before", "RUN", "directly before this waiting run, with its priority"),
            flag("--first", "before all others"),
        ),
        json="an object with the live runs, the waiting runs and the reservations",
    ),
    "show": page(
        "RUN [options]",
        "Show everything about one run: state, numbers, history and files.",
        ("last", "01K9ZW --json"),
        RUN,
        json="the run with history, headline, process ids, losses and files",
    ),
    "watch": page(
        "RUN... [options]",
        "Follow runs live until they end. Ctrl-C leaves; the runs continue.",
        ("last", "last --frames", "01K9ZW 01K9ZX"),
        RUNS,
        flag("--frames", "show the environments of one run live in the terminal"),
        json="a line for each update",
    ),
    "snapshot": page(
        "RUN FILE.png [options]",
        "Save a picture of a run's environments as they are now.",
        ("last now.png",),
        RUN,
        option("file", "FILE.png", "the picture's path", type=Path),
        json="the picture's path, size and numbers",
    ),
    "record": page(
        "RUN FILE.mp4 [options]",
        "Save a video of a run's environments, starting now. Ctrl-C ends it early.",
        ("last film.mp4 --seconds 30",),
        RUN,
        option("file", "FILE.mp4", "the video's path", type=Path),
        number("--seconds", values.count, "its length (10)", default=10),
        json="the video's path, length and number of pictures",
    ),
    "policies": page(
        "[options]",
        "List every trained model and full checkpoint, starting with the newest run.",
        ("", "--algo ppo --env CartPole-v1 --best", "--run 01K9ZW --json"),
        option("--run", "RUN", "only runs whose id begins with this"),
        option("--algo", "ALGO", "only this algorithm"),
        option("--env", "ENV", "only this environment"),
        flag("--best", "only the best policy of each run"),
        number("--limit", values.count, f"at most this many ({LISTED_POLICIES})", default=LISTED_POLICIES),
        _ALL,
        json="a list of policies, with their paths",
    ),
    "envs": page(
        "[FILTER...] [options]",
        "List the known environments by family: whether they are installed or how to install them, their\n"
        "observations and actions, the algorithms that can train on them, and their backends. Name your "
        "own environment as module:EnvId.",
        ("", "cart", "--family atari --algo ppo_atari_envpool", "--installed --json"),
        option("filter", "FILTER", "only environments with all these words in their id or family", nargs="*"),
        option("--family", "NAME", "only this family, such as classic or atari"),
        option("--algo", "NAME", "only environments on which this algorithm can train"),
        flag("--installed", "only installed environments"),
        json="a list of environments",
    ),
    "logs": page(
        "RUN [options]",
        "Show what a run has printed.",
        ("last", "last --stderr -n 30", "01K9ZW -f"),
        RUN,
        one_of(
            *(
                flag(f"--{name}", text, dest="stream", action="store_const", const=name, default="stdout")
                for name, text in (
                    ("stderr", "its error output instead of its standard output"),
                    ("events", "its lifecycle events"),
                    ("supervisor", "the log of its supervisor"),
                )
            )
        ),
        flag("-f --follow", "follow new lines until the run ends"),
        number("-n --lines", values.count, "only the last N lines"),
        flag("--raw", "the unchanged bytes, including colours and other terminal escape sequences"),
        json="an object with the lines; with -f one object per line",
    ),
    "tensorboard": page(
        "RUN... [options]",
        "Show the curves of runs in TensorBoard, also during training. Ctrl-C ends it.",
        ("last", "01K9ZW 01K9ZX --port 6007"),
        RUNS,
        number("--port", values.port, f"the port ({USUAL_PORT}, or a free one)"),
    ),
    "tag": page(
        "RUN... [--add TAG] [--remove TAG] [--name NAME] [--notes TEXT] [options]",
        "Change the tags, name and notes of runs in any state. Without options, show them.",
        ("last", "last --add best", "01K9ZW 01K9ZX --add paper --remove draft --name final"),
        RUNS,
        repeated("--add", "TAG", "a tag to add"),
        repeated("--remove", "TAG", "a tag to remove"),
        option("--name", "NAME", "the run's name"),
        option("--notes", "TEXT", "notes on the run; an empty text removes them"),
        json="the runs with their labels",
    ),
    "push": page(
        "RUN [--to USER/MODEL] [options]",
        "Upload the model of an ended run to the Hugging Face Hub: weights, policy description, scores, "
        "curves,\n"
        "a video if there is one, and a model card. The token comes from HF_TOKEN or the Hub's own "
        "login. An\n"
        "earlier upload is replaced.",
        ("last", "01K9ZW:best --to me/lunar-lander --private"),
        option("run", "RUN", f"{RUN_HELP}; append ':best' for its best model"),
        option(
            "--to",
            "USER/MODEL",
            "the model's name, or MODEL alone; the default is CleanRL's ENV-NAME-seedN, and USER/ uses "
            "that name under another user or organization",
        ),
        flag("--private", "make a new model private; an existing one keeps its visibility"),
        json="an object with the run's id, the model's name and its address",
    ),
    "pull": page(
        "USER/MODEL [options]",
        "Download a model from the Hugging Face Hub: one that `push` has uploaded, or one of CleanRL's "
        "own.\n"
        "`eval`, `play` and `train --resume` then take its name, and `policies` lists it. No code in it "
        "is\n"
        "executed.",
        ("cleanrl/CartPole-v1-dqn-seed1", "me/lunar-lander --revision v2"),
        option("model", "USER/MODEL", "its name, or the address of its page"),
        option("--revision", "NAME", "a branch, tag or commit (the newest)"),
        json="an object with the model's description and the path of its file",
    ),
    "rm": page(
        "RUN... [options]",
        "Remove ended runs from the list, with their folders and everything in them. Their output can "
        "still be read (`logs RUN`) until `gc` removes it.",
        ("01K9ZW", "last --yes"),
        RUNS,
        _YES,
    ),
    "gc": page(
        "[options]",
        f"Remove ended runs by rules; by default those that ended more than {USUAL_DAYS} days ago. A run "
        "is\n"
        "removed if all rules apply to it. Leftovers are removed too: old logs of removed runs, dangling\n"
        "links, unfinished files. Live runs are never touched. gc first shows what would be removed and "
        "how\n"
        "much space that frees, and asks.",
        ("--dry-run", "--outcome failed,cancelled --older-than 2d", "--keep 50 --not-tag paper --yes"),
        option(
            "--older-than",
            "AGE",
            f"the minimum time since the end: 30d, 12h, 2w, or 0 for any ({USUAL_DAYS}d)",
            type=values.age,
            default=USUAL_DAYS * 86_400.0,
        ),
        number("--keep", values.natural, "always keep the newest N ended runs", default=0),
        repeated("--outcome", "LIST", f"only these outcomes: {','.join(Outcome)}"),
        _ONLY_TAG,
        repeated("--not-tag", "TAG", "not with this tag"),
        flag("--dry-run", "only show what would be removed"),
        _YES,
        json="an object with what is removed, and whether that has happened",
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
        "Check the installation: what is installed, what is missing, and the command that installs it.\n"
        "The exit code is 1 if something that every run needs is broken.",
        (),
        json="an object with all findings",
    ),
    "daemon": page(
        "[start|stop|status] [options]",
        "Start, stop or inspect the daemon, which queues runs and keeps their state. It starts "
        "automatically\n"
        "when it is needed, and stopping it ends no run.",
        ("status", "stop", "start --port 50060"),
        option("action", "ACTION", f"{', '.join(DAEMON_ACTIONS)} (status)", nargs="?", default="status"),
        number("--port", values.port, "start: listen only on this port; 0 for any free port"),
        json="whether it is running, its address, version and load",
    ),
}
"""What makes the parser of each, by its name."""
