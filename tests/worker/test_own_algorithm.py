"""An algorithm of one's own, as docs/your-own.md shows it, is trained, resumed and played as ours are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.checkpoint_files import list_checkpoints
from cleanrl_worker.config.registry import find_algorithm_file
from cleanrl_worker.evaluation.episodes import evaluate
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.schemas import model
from cleanrl_worker.schemas.model import load_schema
from cleanrl_worker.supervisor.offers import CATALOG
from conftest import RunMosaic
from mosaic.client import Client, eval_config, list_policies, resume_config, train_config
from mosaic.contract.errors import UntrustedModuleError, UserError
from mosaic.contract.extras import is_installed
from support.own_algorithm import example, write_example

ASKED = {"run_id": "r", "env_id": "CartPole-v1", "total_timesteps": 1000}
SHORT: dict[str, Any] = {"total_timesteps": 2048, "params": {"checkpoint_every": 512, "eval_episodes": 2}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, var: Path) -> Path:
    """The example in the user's folder, which is the current one."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return write_example(folder)


def test_it_is_about_sixty_lines() -> None:
    lines = [line for line in example().splitlines() if line.strip()]
    assert 50 <= len(lines) <= 70


def test_it_is_seen_without_being_run(file: Path) -> None:
    for text in ("SPEC = 1 / 0", "SPEC: object = 1 / 0", "from nowhere import SPEC", "SPEC = f(\n"):
        file.write_text(f"raise SystemExit\n{text}\n")
        assert find_algorithm_file(file.name) == str(file)
    for text in ("SPECS = 1", "SPEC: int", "def f():\n    SPEC = 1", "print('SPEC = 1')", "SPEC == 1"):
        file.write_text(f"raise SystemExit\n{text}\n")
        assert find_algorithm_file(file.name) is None
        assert load_schema(file.name) is None


def test_its_parameters_are_in_the_help_and_checked(file: Path, run_mosaic: RunMosaic) -> None:
    told = run_mosaic("train", file.name, "--help").stdout
    assert "--learning-rate FLOAT" in told and "the learning rate of Adam" in told
    dry = ("train", file.name, "CartPole-v1", "--dry-run")
    given = ("--learning-rate", "0.01", "--set", "num_envs=2")
    summary = json.loads(run_mosaic(*dry, *given, "--emit-summary").stdout)
    values = {one["name"]: one["value"] for one in summary["parameters"]}
    assert (values["learning_rate"], values["num_envs"], values["gamma"]) == (0.01, 2, 0.99)
    assert summary["kind"] == "algorithm" and summary["config"]["algo"] == str(file)
    for words, said in (
        (("--set", "learning_rat=1"), "my_a2c.py has no parameter 'learning_rat'; did you mean"),
        (("--gamma", "2"), "my_a2c.py parameter 'gamma' is '2', but must be a number from 0 to 1."),
        (("--num-envs", "few"), "my_a2c.py parameter 'num_envs' is 'few', but must be a whole number"),
        (("--env-id", "Pendulum-v1"), "my_a2c takes discrete actions, but Pendulum-v1 has box actions"),
        (("--steps", "4"), "total_timesteps is 4, which is less than one step of 8 environments"),
    ):
        refused = run_mosaic(*(dry if "--env-id" not in words else (*dry[:2], dry[3])), *words, check=False)
        assert refused.returncode == 2 and said in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1


def test_its_schema_is_kept_by_content_and_not_beside_it(file: Path, var: Path) -> None:
    file.write_text(f"{example()}\nopen(__file__ + '.loaded', 'a').write('x')\nfrom helper import *\n")
    (file.parent / "helper.py").write_text("")
    loaded = Path(f"{file}.loaded")
    for _ in range(2):
        schema = load_schema(file.name)
        assert schema is not None and schema.name == "my_a2c"
    assert loaded.read_text() == "x"
    assert {path.name for path in file.parent.iterdir()} - {"__pycache__"} == {
        file.name,
        "helper.py",
        loaded.name,
    }
    assert list((var / "cache" / "schemas").iterdir())
    (file.parent / "helper.py").write_text("x = 1")
    load_schema(file.name)
    file.write_text(
        file.read_text().replace("learning_rate: NonNegative = 3e-3", "learning_rate: float = 1.0")
    )
    schema = load_schema(file.name)
    assert schema is not None and loaded.read_text() == "xxx"
    parameter = schema.parameter("learning_rate")
    assert parameter is not None and parameter.default == 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SPEC = (", "my_a2c.py is not an algorithm that can be used: line 1: '(' was never closed."),
        ("import nowhere\nSPEC = 1", "line 1: ModuleNotFoundError: No module named 'nowhere'."),
        ("x = 1\nSPEC = 1 / 0", "line 2: ZeroDivisionError: division by zero."),
        ("import sys\nSPEC = sys.exit(3)", "line 2: SystemExit: 3."),
        ("import os\nSPEC = os._exit(3)", "my_a2c.py ends the process that imports it (exit code 3)"),
        ("import time\nSPEC = time.sleep(600)", "my_a2c.py was not imported within 2 s"),
    ],
)
def test_a_mistake_in_it_is_one_sentence_before_anything_starts(
    text: str, said: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in text:
        monkeypatch.setattr(model, "SECONDS", 2.0)
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        CATALOG.check({**ASKED, "algo": file.name}, None, file.parent)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value) and refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SPEC = 42", "my_a2c.py: SPEC is 42, but must be an AlgorithmSpec."),
        ("SPEC = AlgorithmSpec(name='mine', args=Args)", "SPEC has no train, load_policy, action_spaces"),
        ("SPEC = replace(SPEC, train=None)", "my_a2c.py: SPEC.train is None, but must be a function."),
        ("SPEC = replace(SPEC, name='')", "my_a2c.py: SPEC.name is '', but must be a text"),
        ("SPEC = replace(SPEC, args=int)", "SPEC.args is <class 'int'>, but must be a dataclass"),
        ("SPEC = replace(SPEC, args=CommonArgs)", "CommonArgs has no num_envs: add"),
        (
            "SPEC = replace(SPEC, action_spaces=())",
            "SPEC.action_spaces is (), but must be a tuple of some of",
        ),
        ("SPEC = replace(SPEC, observation_spaces=('words',))", "SPEC.observation_spaces is ('words',)"),
        ("SPEC = replace(SPEC, requires='atari')", "SPEC.requires is 'atari', but must be a tuple"),
        (
            "@dataclass\nclass Odd(Args):\n    sizes: tuple = (1, 2)\nSPEC = replace(SPEC, args=Odd)",
            "my_a2c.py: Odd cannot be used: sizes is a tuple, but must be one of bool, int, float, str.",
        ),
    ],
)
def test_a_spec_with_missing_or_wrong_parts_is_refused_in_one_sentence(
    text: str, said: str, file: Path
) -> None:
    file.write_text(f"{example()}\nfrom dataclasses import replace\n{text}")
    with pytest.raises(UserError) as refused:
        load_spec(str(file))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value) and refused.value.exit_code == 2


def test_what_it_needs_installed_is_asked_for(file: Path, run_mosaic: RunMosaic) -> None:
    if is_installed("wandb"):
        pytest.skip("wandb is installed here")
    file.write_text(example().replace('("vector",))', '("vector",), requires=("wandb",))'))
    refused = run_mosaic("train", file.name, "CartPole-v1", check=False)
    assert refused.returncode == 2
    assert "my_a2c needs the optional set 'wandb': run `" in refused.stderr
    assert "mosaic extras install wandb`." in refused.stderr


def test_it_learns(file: Path, tmp_path: Path) -> None:
    words = ["--total-timesteps=40000", "--checkpoint-every=0", "--eval-episodes=10", "--learning-rate=7e-3"]
    command = [sys.executable, "-m", "cleanrl_worker.kit.loading", file.name, *words]
    subprocess.run(command, check=True, timeout=200)
    (path,) = file.parent.glob("runs/*/my_a2c.cleanrl_model")
    model = open_model(path, str(file))
    with model.make_envs(5) as envs:
        found = evaluate(model.load_policy(envs), envs, 10, 1)
    # A random policy earns 22.
    assert found.mean > 100


def test_it_resumes_to_the_byte(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleanrl_worker.kit.run import run_with

    spec = load_spec(str(file))
    values = {"total_timesteps": 2048, "checkpoint_every": 1024, "eval_episodes": 0}
    models = []
    for name in ("whole", "resumed"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert run_with(spec, values) == 0
        values = {**values, "resume_from": str(list_checkpoints(Path("checkpoints").absolute())[0])}
        (path,) = Path("runs").glob("*/my_a2c.cleanrl_model")
        models.append(path.read_bytes())
    assert models[0] == models[1]


def test_a_run_of_it_is_kept_resumed_and_evaluated(file: Path, client: Client, run_mosaic: RunMosaic) -> None:
    run = client.wait(client.submit(train_config(file.name, "CartPole-v1", **SHORT)).run_id, timeout=120)
    assert run.outcome == "completed", run.reason
    folder = Path(run.run_dir)
    assert (folder / "algorithm" / file.name).read_text() == file.read_text()
    handed = json.loads((folder / "arguments.json").read_text())
    assert handed["algo"] == str(file) and handed["arguments"]["checkpoint_every"] == 512
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["algorithm"]["path"] == str(file) and len(provenance["algorithm"]["sha256"]) == 64
    assert provenance["command"][1:4] == ["-m", "cleanrl_worker.kit.loading", str(file)]
    assert {one.algo for one in list_policies()} == {str(file)}

    evaluation = eval_config(run.run_id, episodes=2)
    assert evaluation["metadata"]["worker"]["config"]["algo"] == str(file)
    played = client.wait(client.submit(evaluation).run_id, timeout=120)
    assert played.outcome == "completed", played.reason

    file.write_text(f"{file.read_text()}\n# changed\n")
    told = run_mosaic("train", "--resume", run.run_id, "--extend", "1k", "--dry-run", "--emit-summary").stdout
    assert "has changed since the training" in json.loads(told)["resumed_from"]["explanation"]
    file.unlink()
    resumed = resume_config(run.run_id, extend=1024)
    assert resumed["metadata"]["worker"]["config"]["algo"] == str(folder / "algorithm" / file.name)
    went_on = client.wait(client.submit(resumed).run_id, timeout=120)
    assert went_on.outcome == "completed", went_on.reason
    assert went_on.headline["step"] == 3072


def test_only_a_file_that_was_named_is_imported(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, var: Path
) -> None:
    from cleanrl_worker.kit.run import run_with

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    values = {"total_timesteps": 512, "checkpoint_every": 256, "eval_episodes": 0}
    assert run_with(load_spec(str(file)), values) == 0
    checkpoint = str(list_checkpoints(Path("checkpoints").absolute())[-1])
    (model,) = map(str, Path("runs").absolute().glob("*/my_a2c.cleanrl_model"))
    shutil.rmtree(var / "cache", ignore_errors=True)
    file.write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n{example()}")
    asked = [
        lambda trust: resume_config(checkpoint, extend=512, extras=trust),
        lambda trust: resume_config(model, total_timesteps=512, extras=trust),
        lambda trust: eval_config(checkpoint, extras=trust),
        lambda trust: eval_config(model, extras=trust),
        lambda trust: open_model(Path(model), trusted=trust.get("trust_modules", ())),
    ]
    for ask in asked:
        with pytest.raises(
            UntrustedModuleError, match=f"names the algorithm {file}, whose code would be run"
        ):
            ask({})
    assert not (tmp_path / "imported").exists()
    for ask in asked:
        ask({"trust_modules": [str(file)]})
    assert (tmp_path / "imported").exists()
    eval_config(model, algo=str(file))


PLUG_IN = {
    "their_package/__init__.py": "",
    "their_package/ok.py": example().replace('"my_a2c"', '"their_a2c"'),
    "their_package/broken.py": "import nowhere\n",
    "their_package-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n",
    "their_package-1.0.dist-info/entry_points.txt": "[mosaic.algorithms]\n"
    "their_a2c = their_package.ok:SPEC\n"
    "broken = their_package.broken\n"
    "gone = not_installed.algorithm\n"
    "ppo = their_package.broken\n",
}


@pytest.fixture
def plug_in(tmp_path: Path, var: Path) -> dict[str, str]:
    """An installed package with algorithms; gives the environment in which it is found."""
    for name, text in PLUG_IN.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"PYTHONPATH": str(tmp_path / "site")}


def test_an_installed_plug_in_is_an_algorithm_by_name(plug_in: dict[str, str], run_mosaic: RunMosaic) -> None:
    told = run_mosaic("train", "their_a2c", "--help", env=plug_in).stdout
    assert "--learning-rate FLOAT" in told
    words = ("their_a2c", "CartPole-v1", "--steps", "1024", "--eval-episodes=1", "--checkpoint-every=512")
    ended = json.loads(run_mosaic("train", *words, "--json", env=plug_in).stdout)
    assert ended["outcome"] == "completed"
    run_mosaic("eval", ended["run_id"], "--episodes", "1", env=plug_in)
    run_mosaic("train", "--resume", ended["run_id"], "--extend", "512", env=plug_in)
    refused = run_mosaic("train", "their_a2c", "Pendulum-v1", "--dry-run", env=plug_in, check=False)
    assert "their_a2c takes discrete actions" in refused.stderr


def test_a_broken_plug_in_hides_nothing_and_says_what_is_wrong(
    plug_in: dict[str, str], run_mosaic: RunMosaic
) -> None:
    code = (
        "import sys; from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY as known\n"
        "print(*known); "
        "print(known['ppo'], [name for name in sys.modules if name in ('torch', 'numpy', 'their_package')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **plug_in}
    )
    names, about = done.stdout.splitlines()
    assert {"ppo", "dqn", "their_a2c", "broken", "gone"} <= set(names.split())
    assert about == "cleanrl_worker.algorithms.ppo []"
    for name, said in (("broken", "No module named 'nowhere'"), ("gone", "No module named 'not_installed'")):
        refused = run_mosaic("train", name, "CartPole-v1", "--dry-run", env=plug_in, check=False)
        assert refused.returncode == 2 and said in refused.stderr
        assert f"The algorithm '{name}' of another package" in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
    run_mosaic("train", "ppo", "CartPole-v1", "--dry-run", env=plug_in)


def test_another_python_file_runs_as_a_script(file: Path, client: Client) -> None:
    file.write_text("import sys\nspec = 1\nprint('told', *sys.argv[1:])\n")
    config = train_config(file.name, "CartPole-v1", total_timesteps=7)
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    assert b"told --env-id=CartPole-v1 --total-timesteps=7" in b"".join(client.logs(run.run_id))
