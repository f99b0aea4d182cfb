"""The algorithm of one's own that the documentation shows, as a file."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "your-own.md"
NAME = "my_a2c"
_BEGIN = f"```python\n# {NAME}.py\n"


def example() -> str:
    """The text of the file, as it stands in docs/your-own.md."""
    return f"# {NAME}.py\n" + PAGE.read_text("utf-8").partition(_BEGIN)[2].partition("```")[0]


def write_example(folder: Path) -> Path:
    """The file in a folder."""
    path = folder / f"{NAME}.py"
    path.write_text(example())
    return path
