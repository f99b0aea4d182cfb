"""What may be missing: the optional sets of packages (`atari`, `mujoco`, …) and libraries of the system."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.contract.errors import MosaicError, UserError, closest

if TYPE_CHECKING:
    from packaging.requirements import Requirement

DISTRIBUTION = "mosaic-rl"
_NOT_OPTIONAL = frozenset({"test"})
_PINNED = "torch"
"""Kept as it is by every installation: another build of it is gigabytes."""

PURPOSES = {
    "archives": "archives of runs that end in .tar.zst (`mosaic export`)",
    "atari": "Atari games (ALE/…, …NoFrameskip-v4)",
    "benchmarks": "the scripts in benchmarks/: figures and other libraries",
    "box2d": "LunarLander and BipedalWalker",
    "classic": "rendering classic control and toy text environments",
    "curriculum": "curricula of Syllabus-RL, which choose the tasks of a run",
    "dm_control": "DeepMind Control tasks (dm_control/…)",
    "envpool": "EnvPool's compiled environments, as `env_backend` or in scripts of your own",
    "gui": "the window (`mosaic gui`)",
    "hub": "models to and from the Hugging Face hub",
    "jax": "algorithms in JAX (`dqn_jax`, …)",
    "minigrid": "MiniGrid and BabyAI grid worlds",
    "mlflow": "tracking with MLflow",
    "mujoco": "MuJoCo robots (Ant, HalfCheetah, Walker2d, …)",
    "pettingzoo": "multiplayer Atari games (pettingzoo/pong_v3, …)",
    "plots": "figures of learning curves for papers (`mosaic plot`)",
    "procgen": "Procgen games (StarpilotEasy-v0, …), in EnvPool's build",
    "sweeps": "hyperparameter search with Optuna (`mosaic sweep`), and its dashboard",
    "sweeps_sql": "studies of sweeps in PostgreSQL and MariaDB",
    "trackio": "tracking with trackio",
    "video": "videos of episodes",
    "wandb": "tracking with Weights & Biases",
    "web": "pages of TensorBoard and Weights & Biases within the window",
}


SET_WITH = {
    **{name: name for name in ("dm_control", "envpool", "jax", "minigrid", "mujoco", "pettingzoo")},
    **dict.fromkeys(("ale_py", "cv2"), "atari"),
    **dict.fromkeys(("flax", "optax"), "jax"),
    "Box2D": "box2d",
    "av": "video",
    "zstandard": "archives",
    "imageio": "mujoco",
    "multi_agent_ale_py": "pettingzoo",
    "pygame": "classic",
    "shimmy": "dm_control",
}
"""Where what a script imports comes from: a package that is not there cannot be asked what it holds."""


@dataclass(frozen=True)
class PackageState:
    """A package that is needed: the version that is there, and whether it will do."""

    name: str
    requirement: str
    version: str | None
    fits: bool


@dataclass(frozen=True)
class ExtraSet:
    """One optional set."""

    name: str
    purpose: str
    packages: tuple[PackageState, ...]

    @property
    def installed(self) -> bool:
        return all(package.fits for package in self.packages)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "installed": self.installed}


def extra_sets() -> list[ExtraSet]:
    """Every optional set that the installed distribution declares."""
    return [_describe(name) for name in _names()]


def is_installed(name: str) -> bool:
    """Whether an optional set is there; UserError when there is none of that name."""
    (wanted,) = check_names([name])
    return _describe(wanted).installed


def require_extra(name: str, for_what: str) -> None:
    """Raise UserError with the command that helps when a set is not installed."""
    if not is_installed(name):
        raise UserError(f"{for_what} needs the optional set '{name}': run `mosaic extras install {name}`.")


def install_advice(module: str, python: str | None = None) -> str:
    """What installs a module that is missing here, or in another interpreter that a run was given."""
    if python is None and (name := SET_WITH.get(module)):
        return f"run `mosaic extras install {name}`"
    return f"run `{python or sys.executable} -m pip install {module}`"


def base_packages() -> list[PackageState]:
    """What every installation has to hold."""
    return list(_states(DISTRIBUTION))


def install_extras(names: Sequence[str], quiet: bool = False) -> None:
    """Install sets with the pip of this interpreter; `quiet` keeps pip's words off standard output."""
    wanted = [
        str(_without_marker(need)) for name in check_names(names) for need in _needs(DISTRIBUTION, name)
    ]
    pinned = [str(need) for need in _needs(DISTRIBUTION) if need.name == _PINNED]
    command = [sys.executable, "-m", "pip", "install", *dict.fromkeys(wanted), *pinned]
    done = subprocess.run(command, stdout=sys.stderr if quiet else None)
    if done.returncode != 0:
        raise MosaicError(f"pip could not install {', '.join(names)}: see its output above.")


def check_names(names: Iterable[str]) -> list[str]:
    """The same names, each once, or an error with the nearest one that exists."""
    known = _names()
    listing = f"There are {', '.join(known)}."
    found: dict[str, None] = {}
    for name in names:
        plain = name.lower().replace("-", "_")
        if plain not in known:
            raise UserError(f"'{name}' is not an optional set{closest(plain, known) or '.'} {listing}")
        found[plain] = None
    if not found:
        raise UserError(f"No optional set is named. {listing}")
    return list(found)


def _names() -> list[str]:
    try:
        declared = metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        raise MosaicError(f"{DISTRIBUTION} is not installed in {sys.executable}.") from None
    # Metadata may spell dm_control as dm-control.
    return sorted(name.replace("-", "_") for name in declared if name not in _NOT_OPTIONAL)


def _describe(name: str) -> ExtraSet:
    packages = tuple(_states(DISTRIBUTION, name))
    purpose = PURPOSES.get(name) or ", ".join(package.name for package in packages)
    return ExtraSet(name, purpose, packages)


def _needs(distribution: str, extra: str = "") -> Iterator[Requirement]:
    """What a distribution requires: always, or with one of its extras on top."""
    # A daemon meets few runs that need an optional set.
    from packaging.requirements import Requirement

    for text in requires(distribution) or ():
        need = Requirement(text)
        always = need.marker is None or need.marker.evaluate({"extra": ""})
        spellings = (extra, extra.replace("_", "-"))
        asked = need.marker is not None and any(need.marker.evaluate({"extra": name}) for name in spellings)
        if always != bool(extra) and (always or asked):
            yield need


def _states(distribution: str, extra: str = "") -> Iterator[PackageState]:
    for need in _needs(distribution, extra):
        try:
            there = version(need.name)
        except PackageNotFoundError:
            yield PackageState(need.name, str(_without_marker(need)), None, False)
            continue
        fits = need.specifier.contains(there, prereleases=True)
        yield PackageState(need.name, str(_without_marker(need)), there, fits)
        for inner in need.extras:
            yield from _states(need.name, inner)


def _without_marker(need: Requirement) -> Requirement:
    plain = copy.copy(need)
    plain.marker = None
    return plain


# The libraries that PySide6 and Procgen expect of the system, and the Debian packages that hold them.
_SYSTEM = {
    "libQt5Core": "libqt5core5a",
    "libQt5Gui": "libqt5gui5",
    "libEGL": "libegl1",
    "libGL": "libgl1",
    "libGLX": "libglx0",
    "libX11": "libx11-6",
    "libX11-xcb": "libx11-xcb1",
    "libdbus-1": "libdbus-1-3",
    "libfreetype": "libfreetype6",
    "libglib-2.0": "libglib2.0-0",
    "libgssapi_krb5": "libgssapi-krb5-2",
    "libgthread-2.0": "libglib2.0-0",
    "libxcb-icccm": "libxcb-icccm4",
    "libxkbcommon-x11": "libxkbcommon-x11-0",
    # These are asked for by QtWebEngine.
    "libXext": "libxext6",
    "libXfixes": "libxfixes3",
    "libXtst": "libxtst6",
    "libasound": "libasound2",
    "libxcb-dri3": "libxcb-dri3-0",
    **dict.fromkeys(("libnspr4", "libplc4", "libplds4"), "libnspr4"),
    **dict.fromkeys(("libnss3", "libnssutil3", "libsmime3"), "libnss3"),
    **{
        name: f"{name.lower()}1"
        for name in (
            *("libXcomposite", "libXdamage", "libXrandr", "libXrender"),
            *("libexpat", "libgbm", "libudev", "libxkbfile"),
        )
    },
    **{
        name: f"{name}0"
        for name in (
            *("libxcb-cursor", "libxcb-glx", "libxcb-image", "libxcb-randr", "libxcb-render"),
            *("libxcb-render-util", "libxcb-shape", "libxcb-shm", "libxcb-xfixes", "libxcb-xinerama"),
            *("libwayland-client", "libwayland-cursor", "libxkbcommon"),
        )
    },
    **{
        name: f"{name}1"
        for name in (
            *("libxcb", "libxcb-keysyms", "libxcb-sync", "libxcb-util", "libxcb-xkb"),
            *("libwayland-egl", "libfontconfig", "libzstd"),
        )
    },
}
_MODULES = ("QtCore", "QtGui", "QtSvg", "QtWidgets")


def absent_libraries(platform: str = "xcb", folder: Path | None = None) -> list[str]:
    """The libraries of the system that the window needs and that are not there; none without PySide6."""
    folder = folder or qt_folder()
    files = [*(folder / f"{name}.abi3.so" for name in _MODULES), *platform_plugins(folder, platform)]
    return _not_found(files)


def absent_for_procgen(folder: Path | None = None) -> list[str]:
    """The same for the games of Procgen in EnvPool's build; none without EnvPool."""
    if folder is None:
        spec = find_spec("envpool")
        folder = Path(spec.origin).with_name("procgen") if spec is not None and spec.origin else Path()
    return _not_found(folder.glob("procgen_*.so"))


def absent_for_web(folder: Path | None = None) -> list[str]:
    """The same for pages within the window; none without QtWebEngine."""
    folder = folder or qt_folder()
    files = ("QtWebEngineWidgets.abi3.so", "Qt/lib/libQt6WebEngineCore.so.6", "Qt/libexec/QtWebEngineProcess")
    return _not_found(folder / name for name in files)


def _not_found(files: Iterable[Path]) -> list[str]:
    """The libraries that these ask for and that the loader does not find."""
    try:
        # The loader would stop at the first one; this tells all of them, also what a library's library needs.
        told = subprocess.run(["ldd", *filter(Path.is_file, files)], capture_output=True, text=True).stdout
    except OSError:
        return []
    return sorted({line.split()[0] for line in told.splitlines() if line.endswith("=> not found")})


def advice_for(libraries: Sequence[str]) -> str:
    """One command for all these libraries."""
    packages = [_SYSTEM.get(re.sub(r"\.so.*", "", name), "") for name in libraries]
    others = " or ".join(name for name, package in zip(libraries, packages, strict=True) if not package)
    command = f"run `apt-get install {' '.join(sorted({*packages} - {''}))}` (on Debian and Ubuntu)"
    if not others:
        return command
    return f"{command}, and install what has {others}" if any(packages) else f"install what has {others}"


def qt_folder() -> Path:
    """Where PySide6 lies; an empty path without it."""
    spec = find_spec("PySide6")
    return Path(spec.origin).parent if spec is not None and spec.origin else Path()


def platform_plugins(folder: Path, platform: str) -> list[Path]:
    """What shows Qt's windows on a platform such as `xcb` or `wayland`."""
    return sorted((folder / "Qt" / "plugins" / "platforms").glob(f"libq{platform}*.so"))
