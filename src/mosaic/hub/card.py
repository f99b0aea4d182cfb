"""The page of a model on the hub: metadata that its search and tables read, then what a person asks."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from mosaic.contract import words
from mosaic.hub import ABOUT, ALGORITHM, CARD_SUFFIX, MODEL_SUFFIX, REPLAY
from mosaic.hub.bundle import Bundle

FILE_NAME = "README.md"
_MARKDOWN = re.compile(r"([\\`*_\[\]|~])")
_TORCH = """import torch
from huggingface_hub import hf_hub_download

path = hf_hub_download({repo}, {model})
weights = torch.load(path, weights_only=True)"""
_FLAX = """from flax.serialization import msgpack_restore
from huggingface_hub import hf_hub_download

path = hf_hub_download({repo}, {model})
with open(path, "rb") as file:
    weights = msgpack_restore(file.read())"""


def write_card(bundle: Bundle, repo: str) -> bytes:
    """`README.md`. Whatever texts a run holds, they are shown as texts."""
    lines = [
        "---",
        *_metadata(bundle),
        "---",
        "",
        f"# (CleanRL) **{_text(bundle.algo)}** agent playing **{_text(bundle.env_id)}**",
        "",
        f"A policy trained with MOSAIC{_trained(bundle)}, in the layout of CleanRL's models.",
        "",
        *_scores(bundle),
        *_loading(bundle, repo),
        *_parameters(bundle),
        *_contents(bundle),
    ]
    return ("\n".join(lines) + "\n").encode()


def _metadata(bundle: Bundle) -> Iterator[str]:
    """YAML, of which JSON's texts are a part."""
    yield "tags:"
    for tag in (bundle.env_id, "deep-reinforcement-learning", "reinforcement-learning", "mosaic-rl"):
        yield f"- {_yaml(tag)}"
    yield "library_name: cleanrl"
    yield "pipeline_tag: reinforcement-learning"
    if bundle.evaluation is None:
        return
    scores = bundle.evaluation.overall
    yield from (
        "model-index:",
        f"- name: {_yaml(bundle.algo)}",
        "  results:",
        "  - task:",
        "      type: reinforcement-learning",
        "      name: reinforcement-learning",
        "    dataset:",
        f"      name: {_yaml(bundle.env_id)}",
        f"      type: {_yaml(bundle.env_id)}",
        "    metrics:",
        "    - type: mean_reward",
        f"      value: {_yaml(f'{scores.mean:.2f} +/- {scores.std:.2f}')}",
        "      name: mean_reward",
        "      verified: false",
    )


def _trained(bundle: Bundle) -> str:
    steps = f" for {bundle.step:,} steps" if isinstance(bundle.step, int) else ""
    return steps if bundle.seed is None else f"{steps} with seed {_text(str(bundle.seed))}"


def _scores(bundle: Bundle) -> Iterator[str]:
    yield "## Evaluation"
    yield ""
    if bundle.evaluation is None:
        if bundle.last_return is None:
            yield "It was not evaluated."
        else:
            told = words.measured(bundle.last_return)
            yield f"It was not evaluated. The last episodes of its training had a mean return of {told}."
        yield ""
        return
    scores, policy = bundle.evaluation.overall, bundle.evaluation.policy
    low, high = scores.interval
    actions = "deterministic" if policy.get("deterministic") else "sampled as in training"
    number = words.measured
    rows = [
        ("mean return", f"{number(scores.mean)} ± {number(scores.std)}"),
        ("95 % interval of the mean", f"{number(low)} to {number(high)} (bootstrap)"),
        ("interquartile mean", number(scores.iqm)),
        ("least, greatest", f"{number(scores.min)}, {number(scores.max)}"),
        ("episodes", f"{scores.episodes:,}"),
        ("actions", actions),
    ]
    yield from ("| | |", "| --- | --- |", *(f"| {name} | {told} |" for name, told in rows), "")
    for note in policy.get("notes", ()):
        yield from (_text(str(note)), "")


def _loading(bundle: Bundle, repo: str) -> Iterator[str]:
    model = f"{bundle.exp_name}{MODEL_SUFFIX}"
    plain = _FLAX if bundle.is_flax else _TORCH
    commands = (
        f"./mosaic pull {repo}",
        f"./mosaic eval {repo} --episodes 100",
        f"./mosaic play {repo}",
        f"./mosaic train --resume {repo} --steps 200k",
    )
    yield from ("## How to load it", "", "With MOSAIC:", "", *_block("sh", commands))
    yield from ("Only the weights, in plain Python, without executing code of the file:", "")
    yield from _block("python", [plain.format(repo=json.dumps(repo), model=json.dumps(model))])


def _parameters(bundle: Bundle) -> Iterator[str]:
    if bundle.args:
        # One on a line: a text cannot end the block, as its own line ends are written as \n.
        told = [f"{name} = {value!r}" for name, value in bundle.args.items()]
        yield from ("## Parameters", "", *_block("python", told))


def _contents(bundle: Bundle) -> Iterator[str]:
    purposes = {
        f"{bundle.exp_name}{MODEL_SUFFIX}": "the weights",
        f"{bundle.exp_name}{CARD_SUFFIX}": "parameters and statistics that rebuild the policy",
        ABOUT: "what was trained, with which versions",
        "eval_summary.json": "the scores of the evaluation",
        REPLAY: "the policy playing",
    }
    yield from ("## Files", "", "| file | what it is |", "| --- | --- |")
    for name in sorted(bundle.files):
        told = purposes.get(name, "curves for TensorBoard" if "tfevents" in name else "a film of an episode")
        told = "the algorithm that trained it" if name.startswith(f"{ALGORITHM}/") else told
        yield f"| {_text(name)} | {told} |"


def _block(language: str, lines: Any) -> Iterator[str]:
    yield from (f"```{language}", *lines, "```", "")


def _text(text: str) -> str:
    """A text between words of the page, with nothing in it that the page would obey."""
    return _MARKDOWN.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _yaml(text: str) -> str:
    """A text for the metadata."""
    return text if re.fullmatch(r"[A-Za-z][\w/.-]*", text) else json.dumps(text)
