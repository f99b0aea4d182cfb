"""The files of a run as a tree."""

from __future__ import annotations

from pathlib import Path

from gym_gui.models.run_files import MOST_IN_FOLDER, Node, tree_of
from mosaic.analytics.artifacts import list_artifacts


def written(folder: Path, *names: str) -> Node:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 100)
    return tree_of(list_artifacts(folder))


def names(node: Node) -> list[str]:
    return [child.name for child in node.children]


def test_folders_come_first_with_the_sizes_of_what_they_hold(tmp_path: Path) -> None:
    root = written(tmp_path, "b/one.mp4", "b/c/two", "a/three", "analytics.json")
    assert names(root) == ["a", "b", "analytics.json"]
    assert (root.size, root.files) == (400, 4)
    assert (root.children[1].size, root.children[1].files) == (200, 2)
    assert names(root.children[1]) == ["c", "one.mp4"]


def test_it_says_what_can_be_played_and_what_evaluated(tmp_path: Path) -> None:
    root = written(
        tmp_path, "videos/e.mp4", "runs/x/ppo.cleanrl_model", "checkpoints/step-5.npz", "logs/a.log"
    )
    found = {child.name: child for folder in root.children for child in folder.children}
    assert found["e.mp4"].playable and not found["e.mp4"].policy
    assert found["step-5.npz"].policy
    model = root.children[2].children[0].children[0]
    assert (model.name, model.policy, model.kind) == ("ppo.cleanrl_model", True, "model")


def test_of_thousands_of_pieces_only_some_are_listed_but_all_are_counted(tmp_path: Path) -> None:
    root = written(tmp_path, *(f"checkpoints/piece-{number:05}" for number in range(MOST_IN_FOLDER + 20)))
    (folder,) = root.children
    assert (len(folder.children), folder.hidden, folder.files) == (MOST_IN_FOLDER, 20, MOST_IN_FOLDER + 20)


def test_a_folder_that_is_gone_is_an_empty_tree(tmp_path: Path) -> None:
    assert tree_of(list_artifacts(tmp_path / "gone")).files == 0


def test_numbers_in_names_are_put_in_the_order_of_counting(tmp_path: Path) -> None:
    root = written(tmp_path, *(f"videos/episode-{n}-step-{n * 90}.mp4" for n in (0, 125, 27, 8)), "videos/a")
    assert names(root.children[0]) == [
        "a",
        *(f"episode-{n}-step-{n * 90}.mp4" for n in (0, 8, 27, 125)),
    ]
