"""Forms about one thing in a file: it is read beside the window when it is chosen."""

from __future__ import annotations

from typing import Any, TypeVar

from PySide6.QtWidgets import QVBoxLayout

from gym_gui.ui.presenters.form import ChoosingForm
from gym_gui.ui.widgets.fields.source_picker import SourcePicker
from gym_gui.ui.widgets.form_frame import FormFrame, Give, section_title

C = TypeVar("C", bound=ChoosingForm[Any])
MODEL_FILES = "Models and checkpoints (*.cleanrl_model *.npz);;All files (*)"
"""The filter of a dialog that opens them."""


class ChoosingFrame(FormFrame[C]):
    """A form whose left column is a list of things to choose from."""

    def fill_source(self, left: QVBoxLayout, heading: str, picker: SourcePicker) -> None:
        """Put the list into the left column."""
        self.source_picker = picker
        self._asked = ""
        self._reading = False
        self._then: Give | None = None
        """What is to be done with the form as soon as what was named has been read."""
        picker.chosen.connect(self.choose)
        left.addWidget(section_title(heading))
        left.addWidget(picker, 1)

    def choose(self, named: str) -> None:
        """Read what was named, and make the form about it."""
        self._asked, self._reading = named, True
        presenter = self.presenter

        def read() -> tuple[str, Any]:
            return named, presenter.read(named)

        self.context.tasks.run(read, self._take, lambda error: self._refuse(named, error), owner=self)

    def _take(self, read: tuple[str, Any]) -> None:
        named, found = read
        if named == self._asked:
            self.presenter.take(found)
            self._settled()

    def _refuse(self, named: str, error: Exception) -> None:
        if named == self._asked:
            self.presenter.refuse(str(error))
            self._settled()

    def _settled(self) -> None:
        self._reading = False
        self.edited()
        then, self._then = self._then, None
        if then is not None:
            super()._order(then)

    def _order(self, give: Give) -> None:
        """What stands in the field is meant, also when its reading has only begun."""
        self.source_picker.settle()
        if self._reading:
            self._then = give
        else:
            super()._order(give)
