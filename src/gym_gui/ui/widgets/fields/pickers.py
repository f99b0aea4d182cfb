"""Lists to choose from: environments under a field, and files that were found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QCoreApplication,
    QEvent,
    QModelIndex,
    QObject,
    QPoint,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gym_gui.models.form_choices import ALL_FAMILIES, EnvironmentList, ListRow, rows_with
from gym_gui.models.form_state import FormState
from gym_gui.theme import LABEL, SPACE, TEXT, number_font, theme
from gym_gui.ui.widgets.basics import (
    Button,
    Index,
    PassingCard,
    elide_parts,
    elide_title,
    fill,
    hbox,
    label,
    named,
    search_field,
    tip,
    vbox,
)
from gym_gui.ui.widgets.fields.layouts import ChoiceBox
from gym_gui.ui.widgets.fields.state_field import FieldBox

_ROW = Qt.ItemDataRole.UserRole
_PADDING = 10
_ARROWS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
_WIDTH, _HEIGHT = 448, 380


class RowModel(QAbstractListModel):
    """Rows of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[ListRow] = []

    def show(self, rows: Sequence[ListRow]) -> None:
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        if role == _ROW:
            return row
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return " ".join(filter(None, (row.title, row.aside, row.about)))
        return tip(row.about or row.title) if role == Qt.ItemDataRole.ToolTipRole else None


class RowDelegate(QStyledItemDelegate):
    """Paints a row: title and aside, and the second line if there is one."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(80, 44 if index.data(_ROW).about else 28)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: ListRow = index.data(_ROW)
        palette = theme.palette
        painter.save()
        area = option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, palette.colour("raised"))
            painter.fillRect(area.adjusted(0, 0, 2 - area.width(), 0), palette.colour("accent"))
        inner = area.adjusted(_PADDING, 0, -_PADDING, 0)
        first = inner.adjusted(0, 5, 0, -22) if row.about else inner
        painter.setFont(number_font(LABEL))
        aside_width = min(painter.fontMetrics().horizontalAdvance(row.aside) + 2, inner.width() // 2)
        painter.setPen(palette.colour("dim" if not row.faint else "faint"))
        middle = Qt.AlignmentFlag.AlignVCenter
        aside = painter.fontMetrics().elidedText(row.aside, Qt.TextElideMode.ElideRight, aside_width)
        painter.drawText(first, middle | Qt.AlignmentFlag.AlignRight, aside)
        painter.setFont(number_font(TEXT, QFont.Weight.DemiBold if row.about else QFont.Weight.Normal))
        painter.setPen(palette.colour("dim" if row.faint else "text"))
        room = first.width() - (aside_width + SPACE[1] if row.aside else 0)
        title = elide_title(painter.fontMetrics(), row.title, room)
        painter.drawText(first, middle, title)
        if row.about:
            painter.setFont(number_font(LABEL))
            painter.setPen(palette.colour("dim"))
            second = inner.adjusted(0, 22, 0, -5)
            painter.drawText(second, middle, elide_parts(painter.fontMetrics(), row.about, second.width()))
        painter.restore()


class PickList(QWidget):
    """Search field and list. `chosen` tells the key of a row that was clicked, or taken with Enter, and
    `marked` that of a row which keys or mouse have come to."""

    chosen = Signal(str)
    marked = Signal(str)
    searched = Signal(str)

    def __init__(self, placeholder: str) -> None:
        super().__init__()
        self.search = search_field(placeholder)
        self._showing = False
        self.model = RowModel()
        self.view = named(QListView(uniformItemSizes=True), "Choices")
        self.view.setModel(self.model)
        self.view.setItemDelegate(RowDelegate(self.view))
        self.view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.view.clicked.connect(self._choose)
        self.view.activated.connect(self._choose)
        self.view.selectionModel().selectionChanged.connect(self._tell_marked)
        self.search.textChanged.connect(self.searched)
        self.search.returnPressed.connect(self._choose_first)
        self.search.installEventFilter(self)
        vbox(self.search, (self.view, 1), on=self)

    def show_rows(self, rows: Sequence[ListRow], selected: str = "") -> None:
        """Show rows, one of them selected."""
        self._showing = True
        self.model.show(rows)
        at = next((number for number, row in enumerate(rows) if row.key == selected), -1)
        if at >= 0:
            self.view.setCurrentIndex(self.model.index(at))
        self._showing = False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The arrows move in the list while one types."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in _ARROWS:
            QCoreApplication.sendEvent(self.view, event)
            return True
        return False

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(self.model.rows[index.row()].key)

    def _tell_marked(self) -> None:
        # Not `currentIndex`: a list that is given the keyboard makes its first row current, unseen.
        for index in self.view.selectedIndexes():
            if not self._showing:
                self.marked.emit(self.model.rows[index.row()].key)

    def _choose_first(self) -> None:
        for index in self.view.selectedIndexes() or [self.model.index(0)]:
            if index.isValid():
                self._choose(index)


class EnvironmentPicker(PassingCard):
    """A popup. `chosen` tells the id; one that nobody knows can be taken as it was typed."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        margins = (SPACE[2], SPACE[2], SPACE[2], SPACE[1])
        super().__init__(over=parent, kind=Qt.WindowType.Popup, margin=margins)
        self._environments = EnvironmentList(())
        self._now = ""
        self.list = PickList("Search environments")
        self.family = named(ChoiceBox(), "Family")
        self.everything = QCheckBox("Also those that do not fit")
        self._count = label("", "faint")
        self.list.searched.connect(self._filter)
        self.list.chosen.connect(self._choose)
        self.family.currentIndexChanged.connect(self._filter)
        self.everything.toggled.connect(self._filter)
        head = hbox((self.family, 1), self.everything, spacing=SPACE[2])
        fill(self.column, head, (self.list, 1), self._count)
        self.resize(_WIDTH, _HEIGHT)

    def open_under(self, field: QWidget, environments: EnvironmentList, now: str, search: str) -> None:
        """Show what there is, below a field, with a beginning of what is searched for."""
        self._environments, self._now = environments, now
        self._show_families()
        self.list.search.setText(search)
        self._filter()
        place = field.mapToGlobal(QPoint(0, field.height() + 2))
        room = field.screen().availableGeometry()
        left = max(room.left(), min(place.x(), room.right() - self.width()))
        self.move(left, max(room.top(), min(place.y(), room.bottom() - self.height())))
        self.show()
        self.list.search.setFocus()

    def _show_families(self) -> None:
        with QSignalBlocker(self.family):
            chosen = self.family.currentData() or ALL_FAMILIES
            self.family.clear()
            self.family.addItem("All families", ALL_FAMILIES)
            for family, title in self._environments.families().items():
                self.family.addItem(title, family)
            self.family.setCurrentIndex(max(0, self.family.findData(chosen)))

    def _filter(self) -> None:
        text = self.list.search.text().strip()
        family = self.family.currentData() or ALL_FAMILIES
        found = self._environments.matching(text, family, self.everything.isChecked())
        rows = [choice.row for choice in found]
        if text and self._environments.find(text) is None:
            rows.append(ListRow(text, f"Use “{text}”", aside="an id of your own, as module:EnvId"))
        self.list.show_rows(rows, self._now)
        self._count.setText(f"{len(found)} of {len(self._environments.choices)} environments")

    def _choose(self, env_id: str) -> None:
        self.hide()
        self.chosen.emit(env_id)


class EnvironmentBox(ChoiceBox):
    """Looks like any other box of choices; what it opens is a list that can be searched."""

    opened = Signal(str)
    """With what was typed to search for."""

    def __init__(self) -> None:
        super().__init__()
        name = QLineEdit()
        self.setLineEdit(name)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setCompleter(None)  # type: ignore[arg-type]
        name.installEventFilter(self)

    def showPopup(self) -> None:
        self.opened.emit("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click into the name opens the list too: whoever clicks there looks for another one."""
        if (
            isinstance(event, QMouseEvent)
            and event.type() == QEvent.Type.MouseButtonPress
            and event.button() == Qt.MouseButton.LeftButton
        ):
            self.showPopup()
            return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shortcut = event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier)
        if event.key() == Qt.Key.Key_Down:
            self.showPopup()
        elif event.text().strip() and event.text().isprintable() and not shortcut:
            self.opened.emit(event.text())
        else:
            super().keyPressEvent(event)


class EnvironmentField(FieldBox):
    """Bound to one name of a state; `environments` gives what there is to choose from now."""

    edited = Signal(str)

    def __init__(self, state: FormState, name: str, environments: Callable[[], EnvironmentList]) -> None:
        self.box = EnvironmentBox()
        super().__init__(state.fields[name].title, self.box)
        self.state, self.key = state, name
        self._environments = environments
        self._picker: EnvironmentPicker | None = None
        self.box.opened.connect(self._open)
        self.box.editTextChanged.connect(self._typed)
        self.refresh("")

    @property
    def picker(self) -> EnvironmentPicker:
        """The list, made when it is first opened."""
        if self._picker is None:
            self._picker = EnvironmentPicker(self)
            self._picker.chosen.connect(self._take)
        return self._picker

    def refresh(self, help_text: str, problem: str = "", instead: str = "") -> None:
        """Show what the state says, or something `instead` of it, with a line under it."""
        text = instead or self.state.text(self.key)
        if self.box.currentText() != text:
            with QSignalBlocker(self.box):
                self.box.setEditText(text)
        self.set_help(help_text, problem)

    def _open(self, search: str) -> None:
        environments, now = self._environments(), self.state.said(self.key)
        # An id of one's own is in no list: it is changed where it is searched.
        search = search or ("" if environments.find(now) else now)
        self.picker.open_under(self.box, environments, now, search)

    def _typed(self, text: str) -> None:
        if text != self.state.text(self.key):
            self._take(text)

    def _take(self, env_id: str) -> None:
        self.state.set(self.key, env_id)
        self.edited.emit(self.key)


class SourcePicker(QWidget):
    """`chosen` tells a path, name or id; who listens reads what is behind it and calls `show_chosen`.

    A row is chosen as soon as it is marked, so that what is marked is what will run.
    """

    chosen = Signal(str)

    def __init__(self, help_text: str, rows: Sequence[ListRow], empty: str, files: str, search: str) -> None:
        """`empty` is said in place of a list without rows; `files` filters the dialog that opens a file."""
        super().__init__()
        self._rows, self._files = rows, files
        self._now = self._told = ""
        """What is chosen, and what was last told to be."""
        self.list = PickList(search)
        self.list.searched.connect(self._search)
        self.list.marked.connect(self._tell)
        self.list.chosen.connect(self._take_row)
        self.name = QLineEdit()
        self.name.editingFinished.connect(self.settle)
        self._field = FieldBox("Another one", self.name, help_text)
        self._help = help_text
        self._browse = Button("Choose a file…", do=self._open_dialog)
        self.empty = label(empty, "dim", wraps=True)
        """What is said in place of the list."""
        vbox(self.empty, (self.list, 1), self._field, self._browse, on=self)
        self.empty.setVisible(not rows)
        self.list.setVisible(bool(rows))
        self._search("")

    def show_chosen(self, key: str, named: str, problem: str = "") -> None:
        """What is chosen now, and why what was named cannot be; what is being typed stays as it is."""
        if not self.name.isModified() or (key and key != self._now):
            self.name.setText(named)
        self._now = key
        self._field.set_help(self._help, problem)
        self._search(self.list.search.text())

    def _search(self, text: str) -> None:
        # What was just named is marked while it is read, and when it cannot be.
        named = any(row.key == self._told for row in self._rows)
        self.list.show_rows(rows_with(self._rows, text), self._told if named else self._now)

    def _take_row(self, key: str) -> None:
        if key != self._told:
            self._tell(key)

    def settle(self) -> None:
        """Choose what was typed, if that was not done yet."""
        named = self.name.text().strip()
        if named and self.name.isModified() and named != self._told:
            self._tell(named)

    def _tell(self, named: str) -> None:
        self._told = named
        self.chosen.emit(named)

    def _open_dialog(self) -> None:
        dialog = QFileDialog(self, "Choose a file", "", self._files)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._tell)
        # Not exec: the window goes on.
        dialog.open()
