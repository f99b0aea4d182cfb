"""The Media tab shows what event files hold besides numbers, and trusts none of it."""

from __future__ import annotations

import io
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtGui import QColor
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter

from gym_gui.ui.views.media import MediaView, decode
from mosaic.analytics.event_files import EventWriter
from mosaic.client import Client, RunRecord
from mosaic.contract.errors import StorageError
from support.window import Driver

from .test_views import open_tab, trained

pytestmark = pytest.mark.xdist_group("gui")


def film(frames: int, size: tuple[int, int] = (48, 40)) -> bytes:
    pictures = [Image.new("RGB", size, (20 * at % 256, 13 * at % 256, 100)) for at in range(frames)]
    out = io.BytesIO()
    pictures[0].save(out, "GIF", save_all=True, append_images=pictures[1:], duration=30)
    return out.getvalue()


def choose(view: MediaView, driver: Driver, name: str, kind: str) -> None:
    driver.until(lambda: view.list.topLevelItemCount() > 0)
    rows = [view.list.topLevelItem(at) for at in range(view.list.topLevelItemCount())]
    view.list.setCurrentItem(next(row for row in rows if (row.text(0), row.text(1)) == (name, kind)))


def with_media(run: RunRecord) -> RunRecord:
    dice = np.random.default_rng(1)
    for path in Path(run.run_dir).glob("runs/*/events.*"):
        path.unlink()
    with SummaryWriter(str(Path(run.run_dir) / "runs" / "media")) as writer:
        for step in range(0, 100, 10):
            writer.add_histogram("weights", dice.normal(step, 1, 1000), step)
            writer.add_image("frame", np.full((3, 8, 12), step / 100), step)
            writer.add_text("notes", f"# step {step}\n<img src='file:///etc/passwd'><b>bold</b>", step)
        image = Summary.Image(height=40, width=48, colorspace=3, encoded_image_string=film(9))
        writer._get_file_writer().add_summary(Summary(value=[Summary.Value(tag="film", image=image)]), 7)
        bad = Summary.Image(height=4, width=4, colorspace=3, encoded_image_string=b"<svg xmlns='x'/>")
        writer._get_file_writer().add_summary(Summary(value=[Summary.Value(tag="odd", image=bad)]), 7)
    return run


def test_each_kind_is_shown_and_the_slider_goes_through_its_steps(driver: Driver, client: Client) -> None:
    run = with_media(trained(client, steps=2000))
    view = open_tab(driver, run, MediaView)
    assert isinstance(view, MediaView)

    choose(view, driver, "notes", "text")
    driver.until(lambda: view.text.toPlainText().startswith("# step 90"))
    assert "<img src='file:///etc/passwd'><b>bold</b>" in view.text.toPlainText()
    view.slider.setValue(2)
    driver.until(lambda: view.text.toPlainText().startswith("# step 20"))
    assert view.about.text().startswith("step 20 ·")

    choose(view, driver, "frame", "image")
    driver.until(lambda: view.pages.currentWidget() is view.pictures and view.pictures.count == 1)
    assert (view.slider.maximum(), view.slider.value()) == (9, 9)
    centre = view.pictures.rect().center()
    driver.until(
        lambda: QColor(view.pictures.grab().toImage().pixel(centre)).red() == pytest.approx(229, abs=2)
    )
    view.slider.setValue(3)
    driver.until(
        lambda: QColor(view.pictures.grab().toImage().pixel(centre)).red() == pytest.approx(76, abs=2)
    )

    choose(view, driver, "weights", "histogram")
    driver.until(lambda: view.pages.currentWidget() is view.heat and view.heat.heat is not None)
    heat = view.heat.heat
    assert heat is not None and heat.steps == list(range(0, 100, 10))
    middles = (heat.edges[:-1] + heat.edges[1:]) / 2
    assert heat.counts @ middles / heat.counts.sum(axis=1) == pytest.approx(np.arange(0, 100, 10), abs=1.0)
    view.slider.setValue(4)
    assert (view.heat.step, view.heat.chosen) == (40, 4)

    choose(view, driver, "film", "video")
    driver.until(lambda: view.pictures.count == 1 and view.pages.currentWidget() is view.pictures)
    colours = set()
    driver.until(
        lambda: colours.add(view.pictures.grab().toImage().pixel(centre)) is None and len(colours) >= 3
    )

    choose(view, driver, "odd", "image")
    driver.until(view.trouble.isVisible)
    assert view.trouble.text() == "The picture is not a PNG, JPEG or GIF file: it cannot be shown."


def test_a_run_without_media_has_no_such_tab_until_there_are_some(driver: Driver, client: Client) -> None:
    run = trained(client, steps=2000)
    for path in Path(run.run_dir).glob("runs/*/events.*"):
        path.unlink()
    bar = driver.window.page.bar
    driver.until(lambda: driver.window.context.runs.get(run.run_id) is not None)
    driver.window.select_run(run.run_id)
    driver.until(lambda: "Artifacts" in [bar.tabText(at) for at in range(bar.count())])
    assert "Media" not in [bar.tabText(at) for at in range(bar.count())]


def test_what_comes_later_is_shown_while_one_looks(driver: Driver, client: Client) -> None:
    run = trained(client, steps=2000)
    folder = Path(run.run_dir) / "runs" / "late"
    with closing(EventWriter(folder)) as writer:
        writer.add_text("late", "first", 1)
    view = open_tab(driver, run, MediaView)
    assert isinstance(view, MediaView)
    choose(view, driver, "late", "text")
    driver.until(lambda: view.text.toPlainText() == "first")
    time.sleep(1.1)
    with closing(EventWriter(folder)) as writer:
        writer.add_text("late", "second", 2)
    view._look()
    driver.until(lambda: view.text.toPlainText() == "second")


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n cut", b"BM" + bytes(99), b"GIF89a"])
def test_a_picture_that_is_damaged_or_foreign_is_one_sentence(data: bytes) -> None:
    with pytest.raises(StorageError, match=r"^The picture is .*: it cannot be shown\.$"):
        decode(data)


def test_a_picture_too_large_for_memory_is_not_decoded() -> None:
    out = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(out, "PNG")
    with pytest.raises(StorageError, match=r"30000 × 30000 pixels: it is too large"):
        decode(out.getvalue())
    assert len(decode(film(200, (800, 800))).frames) == 100
