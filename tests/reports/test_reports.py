"""`compare`, `plot` and `report`: what a person gets, whatever runs are called."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conftest import RunMosaic
from mosaic.contract.paths import VarPaths
from support.ended_runs import EndedRun

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e"


class Page(HTMLParser):
    """The elements of a page, their attributes and all of its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def fill(var: Path) -> list[EndedRun]:
    made = [
        EndedRun(env_id=env_id, seed=seed, params={"learning_rate": rate}, top=top * rate, tags=("paper",))
        for env_id, top in (("CartPole-v1", 1000.0), ("Acrobot-v1", 700.0))
        for rate in (0.1, 0.2)
        for seed in (1, 2)
    ]
    for one in made:
        one.write(VarPaths(var))
    return made


def test_compare_tells_groups_differences_and_draws_them(
    var: Path, run_mosaic: RunMosaic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    made = fill(var)
    shown = run_mosaic("compare", "paper").stdout
    rows = [line for line in shown.splitlines() if re.match(r"[A-D]  ", line)]
    assert len(rows) == 4 and "CartPole-v1 · learning_rate 0.1" in rows[0] and "1–2" in rows[0]
    assert "charts/episodic_return on Acrobot-v1" in shown and "A" * 8 in shown and "\x1b" not in shown
    told = json.loads(run_mosaic("compare", "paper", "--json").stdout)
    first = told["groups"][0]
    assert first["run_ids"] == [made[0].run_id, made[1].run_id] and first["seeds"] == [1, 2]
    assert first["final"]["low"] <= first["final"]["value"] <= first["final"]["high"]
    assert first["settings"]["learning_rate"] == "0.1"


def test_differences_are_told_whole_in_a_terminal_of_any_width(
    var: Path, run_mosaic: RunMosaic, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(var)
    told = {}
    for width in (80, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = [line.rstrip() for line in run_mosaic("compare", "paper").stdout.splitlines()]
        first = next(number for number, line in enumerate(lines) if line.startswith("what differs"))
        told[width] = [" ".join(line.split()) for line in lines[first : first + 3]]
    wide = ["what differs A B C D", "env_id CartPole-v1 CartPole-v1 Acrobot-v1 Acrobot-v1"]
    assert told[80] == [*wide, "learning_rate 0.1 0.2 0.1 0.2"]
    narrow = ["what differs values", "env_id CartPole-v1 A B Acrobot-v1 C D"]
    assert told[60] == [*narrow, "learning_rate 0.1 A C 0.2 B D"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (("paper",), 8),
        (("env=CartPole-v1",), 4),
        (("env=CartPole-v1", "learning_rate=0.2"), 2),
        (("@small",), 2),
        (("last",), 1),
        (("acrobot",), 4),
    ],
)
def test_runs_are_named_in_every_way(
    var: Path, run_mosaic: RunMosaic, wanted: tuple[str, ...], found: int
) -> None:
    made = fill(var)
    run_mosaic("filters", "save", "small", "env=Acrobot-v1 seed=1")
    told = json.loads(run_mosaic("compare", *wanted, "--group-by", "run", "--json").stdout)
    assert len(told["groups"]) == found
    both = json.loads(run_mosaic("compare", made[3].run_id, made[0].run_id, "--json").stdout)
    assert [group["run_ids"] for group in both["groups"]] == [[made[3].run_id], [made[0].run_id]]


def test_a_report_has_all_that_is_asked_of_it(var: Path, run_mosaic: RunMosaic, tmp_path: Path) -> None:
    made = fill(var)
    EndedRun(tags=("paper",), outcome="failed", reason="it broke", points=0).write(VarPaths(var))
    out = tmp_path / "report.html"
    run_mosaic("report", "paper", "-o", str(out), "--title", "My paper")
    page = Page(out.read_text())
    for part in (
        "My paper",
        "9 runs",
        "Over all environments",
        "Probability of improvement",
        "0123456789ab with uncommitted changes",
        "A CPU, 4 of 8 CPUs, 16 GiB of memory",
        "failed: it broke",
        "./mosaic train ppo CartPole-v1 --total-timesteps 1000 --seeds 1-2 --set learning_rate=0.1",
        '"algo_params"',
        made[0].run_id,
    ):
        assert part in page.words, part
    assert sum(attrs.get("class") == "chart" for _, attrs in page.elements) == 3
    assert sum("line s" in (attrs.get("class") or "") for _, attrs in page.elements) == 6


def test_a_report_needs_nothing_and_obeys_nothing(var: Path, run_mosaic: RunMosaic, tmp_path: Path) -> None:
    for seed in (1, 2):
        EndedRun(
            seed=seed, name=HOSTILE, tags=("paper", HOSTILE[:90]), notes=HOSTILE, params={HOSTILE: HOSTILE}
        ).write(VarPaths(var))
    odd = EndedRun(name=HOSTILE, algo=HOSTILE, env_id=HOSTILE, tags=("paper",), outcome="failed")
    odd.reason = HOSTILE
    odd.write(VarPaths(var))
    out = tmp_path / "report.html"
    run_mosaic("report", "paper", "-o", str(out), "--title", HOSTILE)
    text = out.read_text()
    page = Page(text)
    unwanted = {"script", "iframe", "link", "object", "a", "form", "base"}
    assert unwanted.isdisjoint(tag for tag, _ in page.elements)
    for tag, attrs in page.elements:
        assert not any(name.startswith("on") or name in ("href", "style") for name in attrs), (tag, attrs)
        assert tag != "img" or str(attrs["src"]).startswith("data:image/png;base64,")
    assert "\u202e" not in text and HOSTILE[:30] in page.words
    (policy,) = [attrs["content"] for _, attrs in page.elements if "http-equiv" in attrs]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy is not None and policy.startswith("default-src 'none'; img-src data:; ")
    assert f"style-src 'sha256-{hashed}'" in policy
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", re.sub(r"<style>.*?</style>", "", text))


def test_a_figure_has_the_same_bytes_each_time(var: Path, run_mosaic: RunMosaic, tmp_path: Path) -> None:
    fill(var)
    for kind, begin in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        files = [tmp_path / f"{number}.{kind}" for number in (1, 2)]
        for file in files:
            run_mosaic("plot", "paper", "-o", str(file), "--size", "12x8cm", "--statistic", "iqm")
        assert files[0].read_bytes().startswith(begin)
        assert files[0].read_bytes() == files[1].read_bytes(), kind


def test_names_in_a_figure_are_no_formulas(var: Path, run_mosaic: RunMosaic, tmp_path: Path) -> None:
    for number in (1, 2):
        EndedRun(params={"$\\frac{": number}, tags=("paper",)).write(VarPaths(var))
    run_mosaic("plot", "paper", "-o", str(tmp_path / "a.svg"), "--title", "$\\nonsense{", "--style", "slides")
    assert (tmp_path / "a.svg").stat().st_size > 5000


@pytest.mark.parametrize(
    ("command", "out", "said"),
    [
        ("plot", "curve.jpg", "does not end in .svg, .png, .pdf"),
        ("plot", "nowhere/curve.svg", "there is no folder"),
        ("report", "report.pdf", "does not end in .html"),
        ("report", "nowhere/report.html", "there is no folder"),
        ("export", "run.zip", "does not end in .tar"),
        ("export", "nowhere/run.tar", "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_told_in_a_sentence(
    var: Path, run_mosaic: RunMosaic, tmp_path: Path, command: str, out: str, said: str
) -> None:
    EndedRun().write(VarPaths(var))
    done = run_mosaic(command, "last", "-o", str(tmp_path / out), check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert list(tmp_path.glob("[!v]*")) == []


def test_no_run_fits_is_a_sentence(var: Path, run_mosaic: RunMosaic) -> None:
    EndedRun(points=0).write(VarPaths(var))
    done = run_mosaic("compare", "nosuch", check=False)
    assert done.returncode == 2 and "No run matches nosuch" in done.stderr
    assert "–" in run_mosaic("compare", "last").stdout
    done = run_mosaic("plot", "last", "-o", "x.svg", check=False)
    assert done.returncode == 2 and "there is nothing to draw" in done.stderr
