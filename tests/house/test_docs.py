"""What the documents say holds: links lead somewhere, the first screen shows two commands."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIRST_SCREEN_LINES = 30

# A checkout, home or scratch folder of one machine has no place in a file that everybody gets.
MACHINE_PATH = re.compile(r"(?<![\w./$}~-])/(?:work|root|home|Users|farm|opt|mnt|tmp)/\w")


@cache
def project_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True
    )
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    found = [ROOT / name for name in names if name] or [path for path in ROOT.glob("[!.]*") if path.is_file()]
    return [path for path in found if path.is_file()]


def documents() -> list[Path]:
    return [path for path in project_files() if path.suffix == ".md"]


def anchors(document: Path) -> set[str]:
    """The names of the headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ +(.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name) if name else document
        assert path.exists(), f"{document.name} links to {target}"
        if anchor:
            assert anchor in anchors(path), f"{document.name} links to {target}"


def test_the_first_screen_of_the_readme_has_exactly_two_commands() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:FIRST_SCREEN_LINES])
    blocks = re.findall(r"^```(?:sh|bash|console)\n(.*?)^```", first_screen, re.MULTILINE | re.DOTALL)
    commands = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    assert [line for line in commands if line] == ["./mosaic train ppo CartPole-v1", "./mosaic test"]


def test_no_file_mentions_a_path_of_one_machine() -> None:
    found = []
    for path in project_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert not found
