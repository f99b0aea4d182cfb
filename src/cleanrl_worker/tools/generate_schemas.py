"""Writes schemas.json from the arguments of every algorithm in the registry.

`python -m cleanrl_worker.tools.generate_schemas [--check]`
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import inspect
import json
import sys
import types
import typing
from typing import Any

from cleanrl_worker.kit.args import RUNTIME_FIELDS, Bounds
from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.schemas.load import SCHEMAS_FILE
from mosaic.contract.atomic import write_atomic


def generate() -> str:
    """The text of schemas.json as it should be."""
    schemas = {name: algorithm_schema(module) for name, module in DEFAULT_ALGO_REGISTRY.items()}
    return json.dumps(schemas, indent=1, ensure_ascii=False) + "\n"


def algorithm_schema(module_name: str) -> dict[str, Any]:
    """One algorithm's entry, from its `SPEC`."""
    module = importlib.import_module(module_name)
    spec = module.SPEC
    hints = typing.get_type_hints(spec.args, include_extras=True)
    texts = field_texts(spec.args)
    return {
        "help": inspect.cleandoc(spec.args.__doc__).splitlines()[0],
        "action_spaces": list(spec.action_spaces),
        "observation_spaces": list(spec.observation_spaces),
        **({"requires": list(spec.requires)} if spec.requires else {}),
        "parameters": [
            parameter_schema(field, hints[field.name], texts) for field in dataclasses.fields(spec.args)
        ],
    }


def parameter_schema(field: dataclasses.Field[Any], hint: Any, texts: dict[str, str]) -> dict[str, Any]:
    """One field's entry; keys that say nothing are left out."""
    if field.name not in texts:
        raise SystemExit(f"Args.{field.name} has no text under it; write what it does there.")
    kind, choices, optional, bounds = read_hint(hint)
    entry: dict[str, Any] = {
        "name": field.name,
        "type": kind,
        "default": field.default,
        "help": texts[field.name],
    }
    if choices:
        entry["choices"] = choices
    if bounds.minimum is not None:
        entry["minimum"] = bounds.minimum
    if bounds.maximum is not None:
        entry["maximum"] = bounds.maximum
    if optional:
        entry["optional"] = True
    if field.name in RUNTIME_FIELDS:
        entry["runtime_only"] = True
    return entry


def read_hint(hint: Any) -> tuple[str, list[Any] | None, bool, Bounds]:
    """Type name, choices, whether null is allowed, and bounds of an annotation."""
    bounds = Bounds()
    if typing.get_origin(hint) is typing.Annotated:
        bounds = next((item for item in hint.__metadata__ if isinstance(item, Bounds)), bounds)
        hint = hint.__origin__
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        optional = len(members) < len(typing.get_args(hint))
        (hint,) = members
    if typing.get_origin(hint) is typing.Literal:
        choices = list(typing.get_args(hint))
        return type(choices[0]).__name__, choices, optional, bounds
    return hint.__name__, None, optional, bounds


def field_texts(args_type: type) -> dict[str, str]:
    """The text under each field, of the class and its bases."""
    texts: dict[str, str] = {}
    for owner in reversed(args_type.__mro__[:-1]):
        (node,) = ast.parse(inspect.getsource(owner)).body
        assert isinstance(node, ast.ClassDef)
        for field, text in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the file is fresh")
    fresh = generate()
    if parser.parse_args().check:
        if SCHEMAS_FILE.is_file() and SCHEMAS_FILE.read_text("utf-8") == fresh:
            return 0
        print("schemas.json is old; run python -m cleanrl_worker.tools.generate_schemas", file=sys.stderr)
        return 1
    write_atomic(SCHEMAS_FILE, fresh.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
