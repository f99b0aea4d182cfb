"""Where else the curves of a run can be seen: TensorBoard, Weights & Biases, a table."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QWidget

from gym_gui.context import Context
from gym_gui.models.facts import RunFacts, read_facts
from gym_gui.services.tensorboard import TensorBoards
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import button
from gym_gui.ui.widgets.opening import open_url
from mosaic.client import RunRecord
from mosaic.contract.atomic import write_atomic


class RunLinks(QWidget):
    """A row of buttons; those that lead nowhere are not shown."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._run: RunRecord | None = None
        self._wandb_url = ""
        self.boards = TensorBoards(context.link.var)
        self.wandb = button("W&&B ↗")
        self.wandb.setToolTip("Weights & Biases")
        self.wandb.setAccessibleName("Weights & Biases")
        self.tensorboard = button("TensorBoard ↗")
        self.export = button("Export CSV…")
        self.wandb.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE[1])
        for one in (self.wandb, self.tensorboard, self.export):
            row.addWidget(one)
        self.wandb.clicked.connect(lambda: open_url(self._wandb_url, context.notifications))
        self.tensorboard.clicked.connect(self._open_tensorboard)
        self.export.clicked.connect(self._ask_and_export)
        self.boards.ready.connect(self._board_ready)
        self.boards.failed.connect(self._board_failed)

    def show_run(self, run: RunRecord) -> None:
        """Lead to this run from now on."""
        self._run, self._wandb_url = run, ""
        self.wandb.hide()

    def refresh(self) -> None:
        """Look for what the run has elsewhere."""
        run = self._run
        if run is not None:
            self._context.tasks.run(lambda: (run.run_id, read_facts(run)), self._show_facts)

    def close_links(self) -> None:
        """End what was started."""
        self.boards.close()

    def _show_facts(self, found: tuple[str, RunFacts]) -> None:
        run_id, facts = found
        if self._run is not None and run_id == self._run.run_id:
            self._wandb_url = facts.wandb_url or ""
            self.wandb.setVisible(bool(facts.wandb_url))

    def _open_tensorboard(self) -> None:
        if self._run is not None:
            self.tensorboard.setEnabled(False)
            self._context.notifications.tell("TensorBoard is starting; it opens in the browser.")
            self.boards.open(self._run.run_id)

    def _board_ready(self, address: str) -> None:
        self.tensorboard.setEnabled(True)
        open_url(address, self._context.notifications)

    def _board_failed(self, why: str) -> None:
        self.tensorboard.setEnabled(True)
        self._context.notifications.tell(why, "bad")

    def _ask_and_export(self) -> None:
        if self._run is None:
            return
        asked, _ = QFileDialog.getSaveFileName(
            self.window(), "Export every point of this run", f"{self._run.run_name}.csv", "Table (*.csv)"
        )
        if asked:
            self.export_to(Path(asked))

    def export_to(self, path: Path) -> None:
        """Write every point of every metric to a table."""
        assert self._run is not None
        run_id, link = self._run.run_id, self._context.link

        def work() -> Path:
            write_atomic(path, link.client().metrics(run_id).to_csv().encode())
            return path

        self._context.tasks.run(work, self._exported)

    def _exported(self, path: Path) -> None:
        self._context.notifications.tell(f"Saved {path}.", "good")
