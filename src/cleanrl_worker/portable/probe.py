"""What the training interpreter knows of an environment or a module, as one JSON line.

Runs by its path in any interpreter from Python 3.8 on, with gymnasium 0.29 or 1.x and nothing of ours.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import warnings
from typing import Any

# Gymnasium 1.x knows these families only after their package was imported.
FAMILY_PACKAGES = (
    (r"ALE/|\w+NoFrameskip-v[04]$", "ale_py"),
    (r"MiniGrid-|BabyAI-", "minigrid"),
    (r"dm_control/", "shimmy"),
    (r"mosaic/(Dial|Corridor)-", "cleanrl_worker.kit.vector_tasks"),
    (r"mosaic/Rally-|pettingzoo/", "cleanrl_worker.kit.matches"),
    (r"mosaic/", "cleanrl_worker.kit.pixel_tasks"),
)
# What a class comes from, the family that it is of, and the extra that installs it.
FAMILIES = (
    ("gymnasium.envs.classic_control", "classic", None),
    ("gymnasium.envs.toy_text", "toy_text", None),
    ("gymnasium.envs.box2d", "box2d", "box2d"),
    ("gymnasium.envs.mujoco", "mujoco", "mujoco"),
    ("gymnasium.envs", "gymnasium", None),
    ("ale_py", "atari", "atari"),
    ("minigrid", "minigrid", "minigrid"),
    ("cleanrl_worker.kit.matches:AtariMatch", "pettingzoo", "pettingzoo"),
    ("cleanrl_worker.", "mosaic", None),
)

# Steps of compiled backends, and the packages that they are in.
BACKEND_PACKAGES = {"envpool": "envpool", "ale": "ale_py"}
BACKEND_TITLES = {"envpool": "EnvPool", "ale": "ALE's vector"}
ATARI = re.compile(r"ALE/(\w+)-v5|(\w+)NoFrameskip-v([04])")
OF_THE_BACKEND = frozenset(
    (
        *("num_envs", "batch_size", "num_threads", "thread_affinity_offset", "max_num_players", "base_path"),
        *("seed", "env_seed", "gym_reset_return_info"),
    )
)
"""What a backend is told by us."""
GAME_OPTIONS = ("repeat_action_probability", "full_action_space", "mode", "difficulty", "max_episode_steps")
ALE_OPTIONS = ("repeat_action_probability", "full_action_space", "max_num_frames_per_episode")
LEVELS = ("num_levels", "start_level")
"""Options of Procgen's games, which take what is below 0 for all levels, without a word."""
PROCGEN_LIBRARY = "libQt5Gui.so.5: run `apt-get install libqt5gui5` (on Debian and Ubuntu)"
SHOWN_OTHERWISE = frozenset(["Blackjack-v1", "tabular/Blackjack-v0"])
"""What EnvPool shows in other numbers than Gymnasium: not the same task."""

FOLDER_VARIABLE = "MOSAIC_USER_FOLDER"
"""As `mosaic.worker.environment` has it."""


class ProbeError(Exception):
    """The environment cannot be made; the text is one sentence."""


class LackingError(ProbeError):
    """A backend does not have the environment, which another one may have."""


def make_environment(env_id: str, kwargs: dict[str, Any]) -> Any:
    """The environment itself; `module:EnvId` imports the module first."""
    module, _, name = env_id.rpartition(":")
    try:
        import gymnasium
    except ImportError as error:
        raise ProbeError(f"Gymnasium cannot be imported in {sys.executable}: {first_line(error)}.") from error
    try:
        if module:
            prefer_own(module)
            importlib.import_module(module)
    except ImportError as error:
        raise ProbeError(
            f"Environment '{env_id}': module '{module}' cannot be imported ({first_line(error)}); "
            "put its folder on PYTHONPATH or install it."
        ) from error
    except (Exception, SystemExit) as error:
        raise ProbeError(
            f"Environment '{env_id}': importing '{module}' fails with {named(error)}."
        ) from error
    import_family(env_id)
    try:
        return gymnasium.make(name, **with_secrets(kwargs))
    except (Exception, SystemExit) as error:
        raise ProbeError(f"Environment '{env_id}' cannot be made: {named(error)}.") from error


def with_secrets(value: Any) -> Any:
    """Keyword arguments with the values of the variables that stand in them as `@env:NAME`."""
    if isinstance(value, dict):
        return {key: with_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_secrets(item) for item in value]
    match = re.fullmatch(r"@env:([A-Za-z_]\w*)", value) if isinstance(value, str) else None
    return os.environ.get(match[1], value) if match else value


def prefer_own(module: str) -> None:
    """Let a module of the user's folder, which comes last, be found where another one has its name.

    Then the folder comes first, as it does for who starts Python there.
    """
    folder, top = os.environ.get(FOLDER_VARIABLE) or os.getcwd(), module.partition(".")[0]
    own = importlib.machinery.PathFinder.find_spec(top, [folder])
    if own is None or own.origin is None or top in sys.modules:
        return
    other = importlib.util.find_spec(top)
    if other is None or other.origin != own.origin:
        sys.path.insert(0, folder)


def import_family(env_id: str) -> None:
    """Import the package that registers `env_id`, where its name tells which one that is."""
    for pattern, package in FAMILY_PACKAGES:
        if re.match(pattern, env_id):
            import_package(package, f"Environment '{env_id}'")
            return


def is_atari(env_id: str) -> bool:
    """Whether this is Gymnasium's id of an Atari game, for which backends prepare the frames themselves."""
    return ATARI.fullmatch(env_id) is not None


def import_backend(backend: str) -> Any:
    """The package of a compiled backend."""
    return import_package(BACKEND_PACKAGES[backend], f"env_backend {backend}")


def import_package(package: str, who: str) -> Any:
    """The package that `who` needs."""
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise ProbeError(
            f"{who} needs the package '{package}', which cannot be imported ({first_line(error)})."
        ) from error
    if package == "ale_py":
        # It would greet on standard error, where a run says what is wrong.
        module.ALEInterface.setLoggerMode(module.LoggerMode.Warning)
    return module


def lacking(backend: str, env_id: str) -> LackingError:
    """What is said of an id that a backend does not have."""
    title = BACKEND_TITLES[backend]
    return LackingError(f"{title} does not have the environment '{env_id}': use env_backend python.")


def name_in_envpool(env_id: str) -> str:
    """The name by which EnvPool has an environment; ProbeError when it does not."""
    match = ATARI.fullmatch(env_id)
    name = env_id
    if match is not None:
        name = f"{match[1] or match[2]}-v5".replace("TicTacToe3D", "TicTacToe3d")
    if name not in import_backend("envpool").registration.registry.specs or env_id in SHOWN_OTHERWISE:
        raise lacking("envpool", env_id)
    return name


def find_envpool(
    env_id: str, kwargs: dict[str, Any], prepared: dict[str, Any] | None = None
) -> tuple[Any, str, dict[str, Any]]:
    """EnvPool's spec of an environment, its name there, and the options that it is made with.

    `kwargs` are the user's; `prepared` says how an algorithm wants the frames of a game.
    """
    envpool = import_backend("envpool")
    name, options = name_in_envpool(env_id), {**(prepared or {}), **with_secrets(kwargs)}
    try:
        known = envpool.make_spec(name).config._asdict()
    except Exception as error:
        reason = named(error)
        if isinstance(error, ImportError) and envpool_family(name) == "envpool.procgen":
            reason = f"the games of Procgen are drawn with a library of the system, {PROCGEN_LIBRARY}"
        raise ProbeError(f"EnvPool cannot make '{env_id}': {reason}.") from error
    taken = [one for one in known if one not in OF_THE_BACKEND]
    check_options("envpool", env_id, kwargs, GAME_OPTIONS if is_atari(env_id) else taken)
    for option in LEVELS:
        if isinstance(options.get(option), int) and options[option] < 0:
            raise ProbeError(f"'{env_id}' is asked for with {option} {options[option]}: give 0 or more.")
    try:
        spec = envpool.make_spec(name, **options)
    except Exception as error:
        raise ProbeError(f"EnvPool cannot make '{env_id}' with {json.dumps(kwargs)}.") from error
    if spec.config.max_num_players > 1:
        raise ProbeError(f"'{env_id}' has several players, but one agent is trained: choose another.")
    return spec, name, options


def envpool_spaces(spec: Any) -> tuple[Any, Any]:
    """What is observed and done in an environment of EnvPool's."""
    with warnings.catch_warnings():
        # Bounds that do not matter here are said to lose precision.
        warnings.simplefilter("ignore")
        return spec.gymnasium_observation_space, spec.gymnasium_action_space


def envpool_family(name: str) -> str:
    """The module of EnvPool's that has an environment, such as `envpool.atari`."""
    return str(import_backend("envpool").registration.registry.specs[name][0])


def find_ale(env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What ALE's vector is told of a game, and of how Gymnasium's id means it."""
    import_backend("ale")
    import gymnasium

    if not is_atari(env_id) or env_id not in gymnasium.registry:
        raise lacking("ale", env_id)
    check_options("ale", env_id, kwargs, ALE_OPTIONS)
    return {"game": gymnasium.spec(env_id).kwargs["game"], **with_secrets(kwargs)}


def check_options(backend: str, env_id: str, kwargs: dict[str, Any], known: Any) -> None:
    """Raise ProbeError for keyword arguments that a backend does not take."""
    for name in kwargs:
        if name not in known:
            takes = ", ".join(known) or "none"
            raise ProbeError(
                f"{BACKEND_TITLES[backend]} does not take the keyword argument '{name}' for '{env_id}'; "
                f"it takes {takes}."
            )


def describe_with(backend: str, env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The catalog's entry for an environment as a backend has it."""
    if backend == "ale":
        find_ale(env_id, kwargs)
    if backend != "envpool":
        with contextlib.closing(make_environment(env_id, kwargs)) as env:
            return describe_environment(env_id, env)
    spec, name, _ = find_envpool(env_id, kwargs)
    space, actions = envpool_spaces(spec)
    key = grid_key(space)
    limit = int(spec.config.max_episode_steps)
    # Its games of Procgen are a set of their own, as they need a library of the system too.
    named = ("atari", "procgen")
    family = next((one for one in named if envpool_family(name) == f"envpool.{one}"), "envpool")
    return {
        "family": family,
        "extra": family if family in named else None,
        "observation": describe_space(space if key is None else space[key]),
        "action": describe_actions(actions),
        "max_episode_steps": limit if 0 < limit < 2**31 - 1 else None,
    }


def grid_key(space: Any) -> str | None:
    """The part of a grid world's observation that is its picture, beside its mission; None of all else."""
    is_world = kind_of(space) == "dict" and {"image", "mission"} <= set(space.spaces)
    return "image" if is_world else None


def describe_environment(env_id: str, env: Any) -> dict[str, Any]:
    """The catalog's entry for an environment: family, extra, spaces, episode limit."""
    family, extra = family_of(env_id.rpartition(":")[2], env.spec)
    # The players of a game see and do the same; the environment itself takes the actions of all at once.
    players = len(getattr(env.unwrapped, "players", "1"))
    action_space = env.unwrapped.seat_action_space if players > 1 else env.action_space
    entry = {
        "family": family,
        "extra": extra,
        "observation": describe_space(env.observation_space),
        "action": describe_actions(action_space),
        "max_episode_steps": env.spec.max_episode_steps if env.spec else None,
    }
    if players > 1:
        entry["players"] = players
    if "rgb_array" not in (env.metadata or {}).get("render_modes", ()):
        entry["draws"] = False
    return entry


def family_of(env_id: str, spec: Any) -> tuple[str, str | None]:
    """Which family an environment belongs to, and the extra that installs it."""
    source = str(spec.entry_point) if spec else ""
    if env_id.startswith("dm_control/"):
        return "dm_control", "dm_control"
    for prefix, family, extra in FAMILIES:
        if source.startswith(prefix):
            return "babyai" if family == "minigrid" and env_id.startswith("BabyAI-") else family, extra
    return "custom", None


def describe_actions(space: Any) -> dict[str, Any]:
    """A space of actions as plain data, with a word where a box has no end or no room."""
    entry = describe_space(space)
    if entry["kind"] == "box":
        room = space.high.astype("float64") - space.low.astype("float64")
        if not (room < float("inf")).all():
            entry["unbounded"] = True
        elif not (room > 0).all():
            entry["fixed"] = True
    return entry


def describe_space(space: Any) -> dict[str, Any]:
    """A space as plain data."""
    kind = kind_of(space)
    entry: dict[str, Any] = {"kind": kind}
    if kind == "box":
        entry["shape"] = list(space.shape)
        entry["dtype"] = str(space.dtype)
        entry.update(uniform_bounds(space))
    elif kind == "discrete":
        entry["n"] = int(space.n)
        if int(space.start):
            entry["start"] = int(space.start)
    elif kind == "multi_discrete":
        entry["nvec"] = space.nvec.tolist()
    elif kind == "multi_binary":
        entry["shape"] = list(space.shape)
    elif kind == "dict":
        entry["spaces"] = {str(key): describe_space(value) for key, value in space.spaces.items()}
    elif kind == "tuple":
        entry["spaces"] = [describe_space(value) for value in space.spaces]
    return entry


def kind_of(space: Any) -> str:
    """The name of gymnasium's class for this space in snake case; `custom` when it has none of them."""
    for base in type(space).__mro__:
        if base.__module__.startswith("gymnasium.spaces.") and base.__name__ != "Space":
            return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", base.__name__).lower()
    return "custom"


def uniform_bounds(box: Any) -> dict[str, float]:
    """`low` and `high` of a box, where each is finite and the same for all its elements."""
    bounds = {}
    for name in ("low", "high"):
        values = getattr(box, name).reshape(-1)
        if values.size and (values == values[0]).all() and abs(float(values[0])) < 1e30:
            bounds[name] = values[0].item()
    return bounds


def has_module(name: str) -> bool:
    """Whether a dotted module is there; nothing of it is run."""
    prefer_own(name)
    path: Any = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        # importlib.util.find_spec would run the parent packages.
        found = (finder.find_spec(".".join(parts[:depth]), path) for finder in sys.meta_path)
        spec = next((one for one in found if one is not None), None)
        path = None if spec is None else spec.submodule_search_locations
        if spec is None or (path is None and depth < len(parts)):
            return False
    return True


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without its full stop or question mark."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".? ") if lines else type(error).__name__


def named(error: BaseException) -> str:
    """An error's kind and text in one line."""
    return f"{type(error).__name__}: {first_line(error)}"


def parse_kwargs(text: str) -> dict[str, Any]:
    """Keyword arguments from a JSON object."""
    try:
        kwargs = json.loads(text)
    except ValueError as error:
        raise ProbeError(
            f"The environment's keyword arguments {text!r} are not JSON: {first_line(error)}."
        ) from error
    if not isinstance(kwargs, dict):
        raise ProbeError(f"The environment's keyword arguments {text!r} must be a JSON object such as {{}}.")
    return kwargs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("env", "module"))
    parser.add_argument("name", help="an environment id, or a module's name")
    parser.add_argument("--kwargs", default="{}", help="keyword arguments for the environment, as JSON")
    parser.add_argument("--backend", default="python", help="what steps the environment")
    options = parser.parse_args()
    # A script's own folder comes first by default. The user's comes last, where it hides nothing.
    if sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    sys.path.append(os.getcwd())
    # Packages greet on stdout when imported, also from C; they get stderr instead.
    sys.stdout.flush()
    result_file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        if options.what == "module":
            result: dict[str, Any] = {"found": has_module(options.name)}
        else:
            result = describe_with(options.backend, options.name, parse_kwargs(options.kwargs))
    except ProbeError as error:
        result = {"error": str(error), **({"lacking": True} if isinstance(error, LackingError) else {})}
    with result_file:
        result_file.write(json.dumps(result) + "\n")
    return 2 if "error" in result else 0


if __name__ == "__main__":
    sys.exit(main())
