"""What the window says of a run's trackers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from gym_gui.models.run_files import RunFacts, own_folder
from mosaic.client import RunRecord
from mosaic.tracking import FAILED, LOCAL, OFFLINE, ONLINE, STARTING, TrackerLink
from mosaic.tracking.settings import proxies

SEVERAL = "Trackers"
_SHORT = {"wandb": "W&B"}
_FIELDS = (
    ("entity", "Entity"),
    ("project", "Project"),
    ("run_name", "Run"),
    ("group", "Group"),
    ("tags", "Tags"),
)
_STATES = {
    STARTING: ("Starting", "dim"),
    ONLINE: ("Online", "good"),
    OFFLINE: ("Offline", "warn"),
    LOCAL: ("On this machine", "accent"),
    FAILED: ("Failed", "bad"),
}


def tab_title(facts: RunFacts) -> str:
    """The tracker's own name, where there is one."""
    names = facts.trackers
    return _SHORT.get(names[0].name, names[0].title) if len(names) == 1 else SEVERAL


@dataclass(frozen=True)
class TrackerWords:
    """What stands on the card of one tracker."""

    title: str
    state: str
    pill: str
    fields: tuple[tuple[str, str], ...]
    notes: str
    command: str
    about_command: str
    problem: str
    url: str


def words_for(link: TrackerLink) -> TrackerWords:
    """The card of a tracker; nothing is shown that it does not say."""
    state, pill = _STATES.get(link.state, (link.state.capitalize(), "dim"))
    if link.state == ONLINE and link.finished:
        state = "Sent"
    told = ((name, link.details.get(key)) for key, name in _FIELDS)
    shown = tuple((name, _text(value)) for name, value in told if value)
    about = ""
    if link.command:
        shows, uploads = "This command shows it in the browser:", "This command uploads the run:"
        about = shows if link.state == LOCAL else uploads
    notes, address = _text(link.details.get("notes") or ""), link.url if _is_page(link.url) else ""
    return TrackerWords(link.title, state, pill, shown, notes, link.command, about, link.problem, address)


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _is_page(address: str) -> bool:
    return urlsplit(address).scheme in ("http", "https")


def with_pages(found: Sequence[TrackerLink]) -> list[TrackerLink]:
    """The trackers whose page can be opened."""
    return [link for link in found if _is_page(link.url)]


def proxy_for(run: RunRecord, link: TrackerLink) -> str:
    """The proxy that the run has asked for, which its page is read through as well; empty for none."""
    if link.name != "wandb":
        return ""
    asked = proxies(run.worker_config.get("extras") or {}, os.environ, own_folder(run))
    return asked.get(urlsplit(link.url).scheme) or next(iter(asked.values()), "")
