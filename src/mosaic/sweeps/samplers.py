"""Samplers and pruners of Optuna by their names, with checked options; and how they draw from a space."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mosaic.contract.errors import UserError, closest
from mosaic.sweeps.space import Parameter, is_number
from mosaic.sweeps.spec import Choice, SweepSpec, plain_name
from mosaic.sweeps.storage import optuna, sentence

_FIXED_SEQUENCE = ("grid", "qmc", "bruteforce")
"""Samplers that must begin with the same seed each time, for they go on in one sequence."""
_BLIND = ("random", "grid", "qmc", "bruteforce")
"""Samplers that learn nothing from results, so that asking early costs nothing."""
_PARTS = ("sampler", "pruner", "crossover")
"""What options may name: the sampler or pruner inside of another one."""
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "float": ("a number", is_number),
    "str": ("text", lambda value: isinstance(value, str)),
    "None": ("", lambda value: value is None),
}
"""What an option of such a type must be, and whether a value is that."""
_SEEDS = 2**32
_STARTUP = "n_startup_trials"
_TRIED = 3
"""So many trials are asked for to see whether a sampler can search something."""


def _classes(kind: str) -> dict[str, Any]:
    module, base = {
        "sampler": (optuna.samplers, "BaseSampler"),
        "pruner": (optuna.pruners, "BasePruner"),
        "crossover": (optuna.samplers.nsgaii, "BaseCrossover"),
    }[kind]
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        plain_name(name): one
        for name, one in found.items()
        if inspect.isclass(one) and issubclass(one, found[base]) and not inspect.isabstract(one)
    }


def _made(kind: str, choice: Choice, more: Mapping[str, Any]) -> Any:
    """What a name and its options stand for; a UserError tells what is wrong with them."""
    known = _classes(kind)
    name = plain_name(choice.name)
    if name not in known:
        raise UserError(
            f"'{choice.name}' is not a {kind} of Optuna{closest(name, known) or '.'} "
            f"There are {', '.join(sorted(known))}."
        )
    takes = inspect.signature(known[name]).parameters
    own = {option: _part(option, value) for option, value in choice.options.items()}
    for option in own:
        if option not in takes:
            hint = closest(option, takes) or (
                f"; it takes {', '.join(takes)}." if takes else "; it takes none."
            )
            raise UserError(f"The {kind} {choice.name} has no option '{option}'{hint}")
        if "Callable" in str(takes[option].annotation):
            raise UserError(
                f"The option '{option}' of the {kind} {choice.name} is a function, which a file cannot "
                "hold: leave it out."
            )
        wanted = [_KINDS.get(one.strip()) for one in str(takes[option].annotation).split("|")]
        value = own[option]
        if None not in wanted and not any(is_it(value) for _, is_it in filter(None, wanted)):
            told = " or ".join(words for words, _ in filter(None, wanted) if words)
            raise UserError(
                f"The option '{option}' of the {kind} {choice.name} is {value!r:.60}, but must be {told}."
            )
    options = {one: value for one, value in more.items() if one in takes} | own
    try:
        return known[name](**options)
    except (ImportError, ModuleNotFoundError) as error:
        raise UserError(
            f"The {kind} {choice.name} needs the package {getattr(error, 'name', None) or _package(error)}: "
            f"install it, or choose another {kind}."
        ) from error
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"The {kind} {choice.name} refuses its options: {sentence(error)}") from error


def _part(option: str, value: Any) -> Any:
    """What an option such as `wrapped_pruner` or `crossover` stands for: another one by its name."""
    kind = option.rpartition("_")[2]
    if kind not in _PARTS or not isinstance(value, str | Mapping):
        return value
    table = {"name": value} if isinstance(value, str) else dict(value)
    name = table.pop("name", None)
    if not isinstance(name, str):
        raise UserError(f"The option '{option}' is {value!r:.60}, but must be the name of a {kind}.")
    return _made(kind, Choice(name, table), {})


def _package(error: Exception) -> str:
    words = str(error).replace("`", "'").split("'")
    return words[1] if len(words) > 2 else str(error)


def make_sampler(spec: SweepSpec, trials: int = 0) -> Any:
    """The sampler; after a restart with other random numbers than those that were used up."""
    name = plain_name(spec.sampler.name)
    seed = spec.search_seed + (0 if name in _FIXED_SEQUENCE else trials)
    more: dict[str, Any] = {"seed": seed % _SEEDS}
    if name == "grid":
        more["search_space"] = {one.key: _grid(one) for one in spec.space}
    return _made("sampler", spec.sampler, more)


def _grid(one: Parameter) -> list[Any]:
    if one.count() is None:
        raise UserError(
            f"The sampler grid needs a step or choices for every parameter: '{one.key}' has neither."
        )
    if one.when or one.algo:
        raise UserError(f"The sampler grid cannot have conditions, as '{one.key}' has: choose another.")
    return one.values()


def make_pruner(spec: SweepSpec) -> Any:
    if spec.pruner is None:
        return optuna.pruners.NopPruner()
    # Optuna counts from the first step, where nothing can be told of a run yet.
    usual = {
        "n_warmup_steps": spec.budget // 5,
        "min_resource": max(1, spec.budget // 10),
        "max_resource": max(1, spec.budget),
    }
    return _made("pruner", spec.pruner, usual)


def looks_ahead(spec: SweepSpec) -> bool:
    """Whether a trial more than run at once can be asked for without loss."""
    return plain_name(spec.sampler.name) in _BLIND


def check_search(spec: SweepSpec) -> None:
    """Try sampler, pruner and space on a study in memory; a UserError tells what will not work."""
    if len(spec.objectives) > 1 and spec.prunes:
        raise UserError("A pruner can judge one objective only: leave [pruner] out, or keep one objective.")
    pruner, sampler = make_pruner(spec), make_sampler(spec)
    if _STARTUP in inspect.signature(type(sampler)).parameters:
        # What it does with results is tried, too, and not the random trials before that only.
        options = {**spec.sampler.options, _STARTUP: 1}
        sampler = make_sampler(replace(spec, sampler=Choice(spec.sampler.name, options)))
    study = optuna.create_study(directions=directions(spec), sampler=sampler, pruner=pruner)
    try:
        for number in range(_TRIED):
            trial = study.ask()
            suggest(spec.space, trial)
            if spec.prunes:
                trial.report(0.0, spec.report_every)
                trial.should_prune()
            study.tell(trial, [float(number)] * len(spec.objectives))
    except (ImportError, ModuleNotFoundError) as error:
        raise UserError(f"The sampler {spec.sampler.name} needs the package {_package(error)}.") from error
    except (ValueError, TypeError, AttributeError, ArithmeticError, LookupError, RuntimeError) as error:
        if is_used_up(error):
            return
        if len(spec.objectives) > 1 and "multi" in str(error).lower():
            raise UserError(
                f"The sampler {spec.sampler.name} cannot search for several objectives: take tpe, nsgaii or "
                "random, or keep one objective."
            ) from error
        raise UserError(f"The sampler {spec.sampler.name} cannot search this: {sentence(error)}") from error


def is_used_up(error: BaseException) -> bool:
    """Whether it is a grid that has nothing left to try, which Optuna says so."""
    return isinstance(error, RuntimeError) and "Study.stop" in str(error).replace("`", "")


def directions(spec: SweepSpec) -> list[Any]:
    return [one.direction for one in spec.objectives]


def suggest(space: Sequence[Parameter], trial: Any) -> dict[str, Any]:
    """A value for each parameter that is wanted, by its name in the study."""
    chosen: dict[str, Any] = {}
    for one in space:
        if not one.is_wanted(chosen):
            continue
        if one.choices:
            chosen[one.key] = trial.suggest_categorical(one.key, list(one.choices))
        elif one.whole:
            step = {} if one.step is None else {"step": int(one.step)}
            chosen[one.key] = trial.suggest_int(
                one.key, int(one.low or 0), int(one.high or 0), log=one.log, **step
            )
        else:
            low, high = float(one.low or 0), float(one.high or 0)
            chosen[one.key] = trial.suggest_float(one.key, low, high, log=one.log, step=one.step)
    return chosen
