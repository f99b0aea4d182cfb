"""Schemas say what an algorithm takes, and refuse what it does not."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Annotated, Any, Literal

import pytest

from cleanrl_worker.algorithms.ppo import Args
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.kit.args import Bounds
from cleanrl_worker.kit.describe import read_hint
from cleanrl_worker.schemas.check import allowed, check_params, check_value
from cleanrl_worker.schemas.model import SCHEMAS_FILE, load_schema
from cleanrl_worker.supervisor.offers import CATALOG
from cleanrl_worker.tools.generate_schemas import generate
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError


def test_schemas_file_is_fresh() -> None:
    assert SCHEMAS_FILE.read_text("utf-8") == generate()


def test_every_registered_algorithm_has_a_schema() -> None:
    assert CATALOG.algorithms() == list(DEFAULT_ALGO_REGISTRY)
    assert load_schema("somebody_elses") is None


def test_schema_has_each_argument_with_default_and_help() -> None:
    schema = load_schema("ppo")
    assert schema is not None
    assert {parameter.name: parameter.default for parameter in schema.parameters} == dataclasses.asdict(
        Args()
    )
    assert all(parameter.help for parameter in schema.parameters)
    gamma = schema.parameter("gamma")
    assert gamma == ParamSchema("gamma", "float", 0.99, "the discount factor", minimum=0.0, maximum=1.0)
    env_id, target_kl = schema.parameter("env-id"), schema.parameter("target-kl")
    assert env_id is not None and env_id.runtime_only
    assert target_kl is not None and target_kl.optional and not target_kl.runtime_only


def test_values_from_a_command_line_get_their_types() -> None:
    texts = {"learning-rate": "1e-3", "num_steps": "256", "anneal_lr": "false", "target_kl": "none"}
    expected: dict[str, Any] = {
        "learning_rate": 1e-3,
        "num_steps": 256,
        "anneal_lr": False,
        "target_kl": None,
    }
    assert check_params("ppo", texts) == expected
    assert check_params("ppo", expected) == expected
    assert check_params("ppo", {"total_timesteps": "1e6"}) == {"total_timesteps": 1_000_000}
    assert isinstance(check_params("ppo", {"gamma": 1})["gamma"], float)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"learning_rat": 1}, "ppo has no parameter 'learning_rat'; did you mean 'learning_rate'?"),
        ({"zzz": 1}, "it takes exp_name, seed"),
        ({"gamma": 1.5}, "'gamma' is 1.5, but must be a number from 0 to 1"),
        ({"gamma": "high"}, "'gamma' is 'high', but must be a number"),
        ({"gamma": None}, "'gamma' is None"),
        ({"gamma": True}, "'gamma' is True"),
        ({"gamma": "nan"}, "'gamma' is 'nan'"),
        ({"num_envs": 0}, "must be a whole number of at least 1"),
        ({"num_envs": 2.5}, "must be a whole number"),
        ({"num_envs": "1e999"}, "must be a whole number"),
        ({"anneal_lr": 1}, "must be true or false"),
        ({"exp_name": 3}, "must be text"),
        ({"gamma": [0.9]}, "'gamma' is [0.9]"),
        ({"num-envs": 1, "num_envs": 2}, "given twice"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(params: dict[str, object], said: str) -> None:
    with pytest.raises(UserError) as caught:
        check_params("ppo", params)
    assert said in str(caught.value)


def test_an_unknown_algorithm_gets_the_closest_name() -> None:
    with pytest.raises(UserError, match=r"no algorithm 'ppoo'; did you mean 'ppo'\?"):
        check_params("ppoo", {})


def test_choices_come_from_literals() -> None:
    assert read_hint(Literal["a", "b"]) == ("str", ("a", "b"), False, Bounds())
    assert read_hint(Annotated[int | None, Bounds(1)]) == ("int", None, True, Bounds(1))
    kind = ParamSchema("kind", "str", "a", "which", choices=("a", "b"))
    assert check_value("x", kind, "b") == "b"
    assert allowed(kind) == "one of 'a', 'b'"
    with pytest.raises(UserError, match="must be one of 'a', 'b'"):
        check_value("x", kind, "c")


def test_schemas_import_neither_torch_nor_gymnasium() -> None:
    code = (
        "import sys, cleanrl_worker.config.registry, cleanrl_worker.schemas.environments;"
        "assert not {'torch', 'gymnasium', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
