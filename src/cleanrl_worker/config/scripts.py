"""Which script a run executes: one of ours, an installed module or a file of the user's own.

The flags of somebody's Python script are read from its source: nothing of it is run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cleanrl_worker.config.modes import MODE_TARGETS
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY, find_algorithm_file, is_path
from cleanrl_worker.config.shell_scripts import ScriptHead, find_shell_script, is_shell_script, read_head
from cleanrl_worker.schemas.check import check_value
from mosaic.contract.capabilities import ParamSchema, ParamType
from mosaic.contract.errors import UserError, closest
from mosaic.contract.numbers import TRUTH
from mosaic.contract.paths import named_path
from mosaic.contract.secrets import referred
from mosaic.worker.environment import user_places

if TYPE_CHECKING:
    from cleanrl_worker.config.worker_config import CleanRLWorkerConfig

Form = Literal["both", "typed", "truthy", "switch", "value"]
ENV_NAMES = ("env_id", "gym_id", "env", "env_name")
"""What scripts call their environment; the first that one of them has is told."""
_TYPES: dict[str, ParamType] = {"int": "int", "float": "float", "str": "str", "bool": "bool"}
OWN_BUDGET = 0
"""Stands for the budget of a script that knows it itself, and nobody else."""
_FEW = 8


@dataclass(frozen=True)
class Flag:
    """One flag, in the script's own spelling."""

    option: str
    form: Form
    """How a boolean is said: `both` is --key and --no-key, `typed` --key=False, `truthy` --key= (an empty
    text is what `type=bool` takes for false), `switch` the flag or nothing; `value` is no boolean."""
    schema: ParamSchema
    """Its type and default, as far as the source tells."""

    def words(self, value: Any) -> list[str]:
        """The flag with a value."""
        if self.form != "value" and isinstance(value, str):
            value = TRUTH.get(value.lower(), value)
        if not isinstance(value, bool):
            return [f"{self.option}={value}"]
        if self.form == "switch":
            return [self.option] if value else []
        if self.form == "both":
            return [self.option if value else f"--no-{self.option[2:]}"]
        return [f"{self.option}={'' if self.form == 'truthy' and not value else value}"]


@dataclass(frozen=True)
class ScriptFlags:
    """What a script takes."""

    parser: Literal["tyro", "argparse", ""] = ""
    flags: Mapping[str, Flag] = field(default_factory=dict)
    """By their names with underscores."""
    complete: bool = False
    """Whether it takes no others; else some may come from where nobody has looked."""

    def find(self, name: str) -> Flag | None:
        """The flag of that name, or None."""
        name = name.replace("-", "_")
        names = ENV_NAMES if name == "env_id" else (name,)
        return next((self.flags[one] for one in names if one in self.flags), None)

    def default(self, name: str) -> Any:
        """The script's own value of a flag; None when it cannot be told."""
        flag = self.find(name)
        return None if flag is None else flag.schema.default

    def words(self, name: str, value: Any) -> list[str]:
        """A flag with its value, as the script's parser takes it; null is left out."""
        if value is None:
            return []
        flag, opposite = self.find(name), self.find(f"no_{name}")
        if flag is None and opposite is not None and isinstance(value, bool):
            return [] if value else [opposite.option]
        if flag is None:
            option = "--" + name.replace("_", "-")
            if value is False:
                return [f"--no-{option[2:]}" if self.parser == "tyro" else f"{option}=False"]
            return [option if value is True else f"{option}={value}"]
        return flag.words(value)

    def check(self, script: str, name: str, value: Any) -> Any:
        """The value with its right type; UserError when the script has no such flag or takes another."""
        flag = self.find(name)
        if flag is None:
            opposite = self.find(f"no_{name}")
            if not self.complete or (opposite is not None and isinstance(value, bool)):
                return value
            known = list(self.flags)
            shown = ", ".join(known[:_FEW]) + (" and others" if len(known) > _FEW else "")
            hint = closest(name, known) or (f"; it takes {shown}." if known else "; it takes none.")
            raise UserError(f"{script} has no parameter '{name}'{hint}")
        if flag.schema.type == "str" or value is None or isinstance(value, list):
            return value
        if referred(value) is not None:
            # Only the script gets to see it.
            return value
        return check_value(script, flag.schema, value)


Kind = Literal["algorithm", "mode", "foreign", "shell"]


@dataclass(frozen=True)
class Script:
    """What the launcher runs."""

    target: str
    """A dotted module or an absolute path."""
    kind: Kind
    """An algorithm on the training kit, which has a schema: of ours, of a plug-in or in a file of the user's;
    the module of a mode; anybody's Python; a shell script."""
    head: ScriptHead = field(default_factory=ScriptHead)
    """What a shell script says of itself."""
    flags: ScriptFlags = field(default_factory=ScriptFlags)
    """What somebody's Python script takes, as far as its source tells."""

    @property
    def ours(self) -> bool:
        """Whether it trains an algorithm on the training kit."""
        return self.kind == "algorithm"

    @property
    def has_main(self) -> bool:
        """Whether it is something of ours that is called, not a foreign script."""
        return self.kind in ("algorithm", "mode")

    @property
    def is_file(self) -> bool:
        return self.target.startswith("/")

    def makes_environments(self) -> bool:
        """Whether it is known to make environments with gymnasium: ours do, and files that speak of it."""
        if self.kind != "foreign" or not self.is_file:
            return self.has_main
        try:
            return b"gymnasium" in Path(self.target).read_bytes()
        except OSError:
            return False


def resolve_script(
    config: CleanRLWorkerConfig, folder: Path | None = None, python: str | None = None
) -> Script:
    """The script for a config's mode and algo; a relative path counts from `folder`, the user's own.

    `python` is the interpreter that a module is looked for in, when it is not this one.
    """
    algo = config.algo
    if config.mode in MODE_TARGETS:
        return Script(MODE_TARGETS[config.mode], "mode")
    source = config.extras.get("module_source", "mosaic")
    if source not in ("mosaic", "upstream"):
        raise UserError(f"'extras.module_source' is {source!r}, but it must be 'mosaic' or 'upstream'.")
    if source == "upstream":
        return foreign_module(f"cleanrl.{algo}", folder, python)
    if algo in DEFAULT_ALGO_REGISTRY:
        return Script(DEFAULT_ALGO_REGISTRY[algo], "algorithm")
    if (own_file := find_algorithm_file(algo, folder)) is not None:
        return Script(own_file, "algorithm")
    if is_shell_script(algo):
        path = find_shell_script(algo, folder)
        return Script(str(path), "shell", read_head(path))
    if is_path(algo):
        path = named_path(algo, folder)
        if not path.is_file():
            raise UserError(f"The script {path} does not exist: check the path.")
        return Script(str(path.resolve()), "foreign", flags=read_flags(path))
    if looks_foreign(algo):
        return foreign_module(algo, folder, python)
    raise UserError(
        f"'{algo}' is not a known algorithm{closest(algo, DEFAULT_ALGO_REGISTRY) or '.'} "
        f"Known: {', '.join(DEFAULT_ALGO_REGISTRY)}; or give the path of a script or a dotted module."
    )


def foreign_module(name: str, folder: Path | None, python: str | None) -> Script:
    """A dotted module of somebody else's, with its flags if its source is found."""
    source = find_source(name, python, [folder or Path.cwd(), *user_places()])
    return Script(name, "foreign", flags=read_flags(source) if source is not None else ScriptFlags())


def flags_of(algo: str, source: Any, folder: Path) -> ScriptFlags:
    """The flags of somebody's script, by what a config calls it."""
    if source != "upstream" and is_path(algo):
        return read_flags(named_path(algo, folder))
    return foreign_module(f"cleanrl.{algo}" if source == "upstream" else algo, folder, None).flags


def own_budget(algo: str, source: Any, folder: Path) -> int | None:
    """How long somebody's script trains when nobody tells it; None for an algorithm, which must be told."""
    own = not looks_foreign(algo) or find_algorithm_file(algo, folder) is not None
    if source != "upstream" and own:
        return None
    default = flags_of(algo, source, folder).default("total_timesteps")
    return int(default) if isinstance(default, int | float) and default >= 1 else OWN_BUDGET


def looks_foreign(algo: str) -> bool:
    """Whether `algo` names a file or a dotted module instead of an algorithm."""
    return is_path(algo) or "." in algo


def read_flags(path: Path) -> ScriptFlags:
    """The flags of a script; none are known of one that cannot be read."""
    if not path.is_file():
        # A pipe would be waited for.
        return ScriptFlags()
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return ScriptFlags()
    return _tyro_flags(tree) or _argparse_flags(tree) or ScriptFlags()


def require_python(path: Path) -> None:
    """Raise UserError for a script with an error of syntax, as this interpreter reads it."""
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        told = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        raise UserError(f"{path.name} is not a script that Python can run: {told}.") from error
    except (OSError, RecursionError):
        # It may be too deep for a tree, or readable for the run alone.
        return


def find_source(module: str, python: str | None, places: Sequence[Path]) -> Path | None:
    """The file of a dotted module, by its name alone: on the user's path, then where packages are."""
    if python is None or python == sys.executable:
        packages = [Path(place) for place in sys.path if place]
    else:
        packages = sorted(Path(python).parent.parent.glob("lib/python3*/site-packages"))
    parts = module.split(".")
    for root in (*places, *packages):
        for file in (root.joinpath(*parts).with_suffix(".py"), root.joinpath(*parts, "__main__.py")):
            if file.is_file():
                return file
    return None


def _tyro_flags(tree: ast.Module) -> ScriptFlags | None:
    calls = [call for call in _calls(tree) if _name(call.func) in ("tyro.cli", "cli")]
    imports = any(isinstance(node, ast.ImportFrom) and node.module == "tyro" for node in ast.walk(tree))
    if not imports and not any(_name(call.func) == "tyro.cli" for call in calls):
        return None
    if len(calls) != 1 or not calls[0].args:
        return ScriptFlags("tyro")
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found: dict[str, Flag] = {}
    complete = _collect_fields(_name(calls[0].args[0]), classes, found)
    return ScriptFlags("tyro", found, complete)


def _collect_fields(name: str, classes: Mapping[str, ast.ClassDef], found: dict[str, Flag]) -> bool:
    """Add the fields of a dataclass and its bases; whether they are all in this file and are plain."""
    node = classes.get(name)
    if node is None:
        return False
    bases = [_collect_fields(_name(base), classes, found) for base in node.bases]
    complete = all(bases)
    for part, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            named = part.target.id
            kinds = {one.id for one in ast.walk(part.annotation) if isinstance(one, ast.Name)}
            if kinds & classes.keys():
                # A group of fields: its flags have longer names.
                complete = False
            known = [_TYPES[kind] for kind in kinds if kind in _TYPES]
            kind = known[0] if len(known) == 1 and len(kinds - {"Optional", "Union"}) == 1 else "str"
            default = _value(part.value)
            # Also without saying so: CleanRL's scripts have `wandb_entity: str = None`.
            optional = default is None or "None" in ast.unparse(part.annotation)
            schema = ParamSchema(named, kind, default, _docstring(after), optional=optional)
            form: Form = "both" if kind == "bool" else "value"
            found[named] = Flag("--" + named.replace("_", "-"), form, schema)
    return complete


def _argparse_flags(tree: ast.Module) -> ScriptFlags | None:
    makers = [call for call in _calls(tree) if _name(call.func).rpartition(".")[2] == "ArgumentParser"]
    added = [call for call in _calls(tree) if _name(call.func).rpartition(".")[2] == "add_argument"]
    if not makers and not added:
        return None
    found: dict[str, Flag] = {}
    read = [_add_argument(call, found) for call in added]
    alone = len(makers) == 1 and not any(keyword.arg == "parents" for keyword in makers[0].keywords)
    return ScriptFlags("argparse", found, all(read) and alone and not _goes_elsewhere(tree))


def _add_argument(call: ast.Call, found: dict[str, Flag]) -> bool:
    """Add the flag of one `add_argument`; whether its name could be read."""
    options = [word.value for word in call.args if isinstance(word, ast.Constant)]
    if len(options) < len(call.args) or any(keyword.arg is None for keyword in call.keywords):
        return False
    long = [word for word in options if isinstance(word, str) and word.startswith("--")]
    said = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    action = _text(said.get("action"))
    type_text = ast.unparse(said["type"]) if "type" in said else ""
    form: Form = "value"
    if action in ("store_true", "store_false", "store_const", "count"):
        form = "switch"
    elif action.rpartition(".")[2] == "BooleanOptionalAction":
        form = "both"
    elif type_text == "bool":
        form = "truthy"
    elif "bool" in type_text or isinstance(_value(said.get("default")), bool):
        form = "typed"
    kind: ParamType = "bool" if form != "value" else _TYPES.get(type_text, "str")
    for option in long:
        name = option[2:].replace("-", "_")
        schema = ParamSchema(name, kind, _value(said.get("default")), _text(said.get("help")), optional=True)
        found[name] = Flag(option, form, schema)
    return True


def _goes_elsewhere(tree: ast.Module) -> bool:
    """Whether flags may be added or taken where this file does not show it."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    parsers = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name) and _name(node.value.func).endswith("ArgumentParser")
    }
    for call in _calls(tree):
        called = _name(call.func)
        if called.rpartition(".")[2] in ("parse_known_args", "add_subparsers"):
            return True
        given = {_name(one) for one in (*call.args, *(keyword.value for keyword in call.keywords))}
        if given & parsers and called not in own:
            return True
    return False


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(node: ast.AST | None) -> str:
    """`tyro.cli` for a dotted name; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST | None) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else _name(node)


def _docstring(node: ast.AST | None) -> str:
    """The text under a field, which is its help."""
    value = node.value if isinstance(node, ast.Expr) else None
    return " ".join(str(value.value).split()) if isinstance(value, ast.Constant) else ""


def _value(node: ast.AST | None) -> Any:
    """A default that stands there as a number, a text or a truth value, also as `int(1e6)`; else None."""
    if isinstance(node, ast.Call) and _name(node.func) in ("int", "float") and len(node.args) == 1:
        inner = _value(node.args[0])
        number = isinstance(inner, int | float)
        return None if not number else int(inner) if _name(node.func) == "int" else float(inner)
    try:
        found = ast.literal_eval(node) if isinstance(node, ast.expr) else None
    except ValueError:
        return None
    return found if isinstance(found, bool | int | float | str) else None
