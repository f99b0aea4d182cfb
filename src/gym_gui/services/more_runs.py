"""What the window does not know of very many runs: asked for page by page, as somebody looks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from PySide6.QtCore import QObject, Signal

from gym_gui.models.filters import RunFilter, counts_by_state, query_for
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Tasks, timer
from mosaic.client import Client, RunPage, RunRecord

_PAGE = 200
_FOUND = 60
_TYPING_MS = 250
_AGAIN_MS = 10_000
"""So often the runs are counted anew."""


@dataclass(frozen=True)
class Wish:
    """Which runs somebody looks at, and in which order."""

    filter: RunFilter = field(default_factory=RunFilter)
    sorted_by: str = "date"
    descending: bool = True


@dataclass(frozen=True)
class _Reach:
    """How much of a wish is known: all up to a run, from where the next page goes on."""

    cursor: str = ""
    last: str = ""
    asked: bool = False

    @property
    def whole(self) -> bool:
        return self.asked and not self.cursor


class MoreRuns(QObject):
    """Asks the daemon for the runs that are looked for. It does nothing while all runs are known."""

    found = Signal(object)
    """list[RunRecord], of which some may be known."""
    changed = Signal()
    """More is known, or how many there are."""

    def __init__(self, link: DaemonLink, tasks: Tasks) -> None:
        super().__init__()
        self._link = link
        self._tasks = tasks
        self.wish = Wish()
        self._reaches: dict[Wish, _Reach] = {}
        self._counts: dict[str, dict[str, int]] = {}
        """By the words of a filter."""
        self._asking: Wish | None = None
        self._text = ""
        self._typing = timer(self, _TYPING_MS, self._find, once=True)
        self._again = timer(self, _AGAIN_MS, self._count)

    @property
    def partial(self) -> bool:
        """Whether there are runs that the window does not know."""
        return self._link.feed.partial is not None

    @property
    def busy(self) -> bool:
        """Whether runs are being looked for."""
        return self._asking is not None

    @property
    def last(self) -> str | None:
        """The run up to which all that is wished for is known, in its order; None when all of it is."""
        reach = self._reach(self.wish)
        return reach.last if self.partial and not reach.whole and reach.asked else None

    @property
    def counts(self) -> Mapping[str, int] | None:
        """How many runs of each state the words find; None while only the known ones can be counted."""
        return self._counts.get(self.wish.filter.text) if self.partial else None

    def look_for(self, wish: Wish) -> None:
        """Somebody looks at these runs now."""
        changed, self.wish = wish != self.wish, wish
        if self.partial and changed:
            if not self._reach(wish).asked:
                self.ask()
            elif self.counts is None:
                self._count()
            self.changed.emit()

    def begin(self) -> None:
        """The first runs are known now."""
        if self.partial and not self._again.isActive():
            self._again.start()
            self._count()

    def ask(self) -> None:
        """Ask for the next page of what is looked at."""
        wish, reach = self.wish, self._reach(self.wish)
        if not self.partial or self._asking == wish or reach.whole or wish.filter.problem:
            return
        self._asking = wish
        query = query_for(wish.filter, wish.sorted_by, wish.descending)

        def read() -> RunPage:
            client = self._link.client()
            counted = wish.filter.text in self._counts
            of_all = wish.filter.state == "all"
            page = client.page(query, _PAGE, reach.cursor, count=of_all and not counted)
            self._link.feed.add(page.runs)
            return page if counted or of_all else replace(page, counts=_counted(client, wish))

        self._tasks.run(read, lambda page: self._take(wish, page), lambda error: self._fail(wish), owner=self)

    def find(self, text: str) -> None:
        """Have runs told of in which all words of a text are, a moment after its last letter."""
        self._text = text
        if self.partial and text.strip():
            self._typing.start()

    def _find(self) -> None:
        query = query_for(RunFilter(text=self._text))

        def read() -> list[RunRecord]:
            runs = self._link.client().page(query, _FOUND).runs
            self._link.feed.add(runs)
            return runs

        self._tasks.run(read, self.found.emit, lambda _: None, owner=self)

    def close(self) -> None:
        self._again.stop()
        self._typing.stop()

    def _take(self, wish: Wish, page: RunPage) -> None:
        self._asking = None if self._asking == wish else self._asking
        before = self._reach(wish)
        last = page.runs[-1].run_id if page.runs else before.last
        self._reaches[wish] = _Reach(page.cursor, last, asked=True)
        self._counts.setdefault(wish.filter.text, counts_by_state(page.counts))
        self.found.emit(page.runs)
        self.changed.emit()

    def _fail(self, wish: Wish) -> None:
        """It is asked again when somebody looks again; that the daemon is away is told elsewhere."""
        self._asking = None if self._asking == wish else self._asking
        self.changed.emit()

    def _reach(self, wish: Wish) -> _Reach:
        newest = self._link.feed.partial
        if wish == Wish() and wish not in self._reaches and newest is not None:
            return _Reach(newest.cursor, newest.runs[-1].run_id, asked=True)
        return self._reaches.get(wish, _Reach())

    def _count(self) -> None:
        wish = self.wish
        if not self.partial or wish.filter.problem:
            return

        def done(counts: Mapping[tuple[str, str | None], int]) -> None:
            self._counts[wish.filter.text] = counts_by_state(counts)
            self.changed.emit()

        self._tasks.run(lambda: _counted(self._link.client(), wish), done, lambda _: None, owner=self)


def _counted(client: Client, wish: Wish) -> dict[tuple[str, str | None], int]:
    """How many runs the words of a filter find, whatever state is chosen."""
    query = replace(query_for(RunFilter(text=wish.filter.text)), fields=("run_id",))
    return client.page(query, 1, count=True).counts
