"""What a person does with the keys of an environment, and what came of it; for terminal and window alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from mosaic.client.configs import each_policy
from mosaic.client.playing import ARROWS, Message

_SIGNS = {**ARROWS, "space": "space", "pageup": "page up", "pagedown": "page down"}
_MOST_POLICIES = 1000
"""So many of the newest are looked at."""
FACTORS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""How much faster than real an environment's time may pass."""


def sign_of(key: str) -> str:
    """A key as it is shown."""
    return _SIGNS.get(key, key.upper() if len(key) == 1 else key)


@dataclass(frozen=True)
class Cap:
    """One key of the legend, or several that are held together."""

    keys: tuple[str, ...]
    word: str

    @property
    def sign(self) -> str:
        return " + ".join(map(sign_of, self.keys))


class KeyMap:
    """Which keys are down, and the action that they make together. Keys that mean nothing are left out."""

    def __init__(self, controls: Mapping[str, Any], shape: Sequence[int] = ()) -> None:
        """`controls` as `init` has them; `shape` is that of an action that is a list."""
        self._chords = [(tuple(chord["keys"]), chord["action"]) for chord in controls["chords"]]
        self._axes: list[dict[str, Any]] = controls["axes"]
        self._aliases: dict[str, str] = controls["aliases"]
        self._idle = controls["idle"]
        self._shape = list(shape)
        self.time: str = controls["time"]
        """`runs` by itself, only while a key is `held`, or by `turns`: a step for each key."""
        self.caps = tuple(self._find_caps(controls["chords"]))
        self.keys = frozenset(key for cap in self.caps for key in cap.keys)
        """All that mean something, by their own names."""
        self.down: list[str] = []
        """The keys that are held, in the order in which they were pressed."""

    def named(self, key: str) -> str | None:
        """The key that is meant by one with another name; None where it means nothing here."""
        meant = self._aliases.get(key, key)
        return meant if meant in self.keys else None

    def press(self, key: str) -> bool:
        """Hold a key down; whether it means something."""
        meant = self.named(key)
        if meant is not None and meant not in self.down:
            self.down.append(meant)
        return meant is not None

    def release(self, key: str) -> None:
        """Let a key go."""
        meant = self.named(key)
        if meant in self.down:
            self.down.remove(meant)

    def let_go(self) -> None:
        """Let all keys go."""
        self.down.clear()

    def action(self) -> Any:
        """The action of the key that was pressed last, with those that go with it; None where it has none."""
        actions = self.actions()
        return actions[-1] if actions else None

    def actions(self) -> list[Any]:
        """The actions of all keys that are held. Where no single one is meant by them together, there are
        several, which are taken in turn; that of the key that was pressed last is the last one."""
        if not self.down:
            return []
        if self._axes:
            return [self._by_axes()]
        held, place = set(self.down), {key: at for at, key in enumerate(self.down)}
        fitting = [(set(keys), action) for keys, action in self._chords if held.issuperset(keys)]
        whole = [one for one in fitting if not any(one[0] < other[0] for other in fitting)]
        whole.sort(key=lambda one: max(place[key] for key in one[0]))
        return [action for _, action in whole]

    def _by_axes(self) -> Any:
        """The idle action with what each key sets; of two keys for one number the later one."""
        numbers = _flat(self._idle)
        settings = {axis["key"]: axis for axis in self._axes}
        for key in self.down:
            numbers[settings[key]["index"]] = settings[key]["value"]
        return _shaped(numbers, self._shape)

    def _find_caps(self, chords: Sequence[Mapping[str, Any]]) -> Iterator[Cap]:
        single = {chord["keys"][0] for chord in chords if len(chord["keys"]) == 1}
        for chord in chords:
            # What several keys do together is what each of them does.
            if len(chord["keys"]) == 1 or not single.issuperset(chord["keys"]):
                yield Cap(tuple(chord["keys"]), str(chord["word"]))
        for axis in self._axes:
            yield Cap((axis["key"],), str(axis["word"]))


def _flat(value: Any) -> list[Any]:
    return [one for part in value for one in _flat(part)] if isinstance(value, list) else [value]


def _shaped(numbers: list[Any], shape: Sequence[int]) -> Any:
    """A flat list as nested ones."""
    if len(shape) <= 1:
        return numbers
    size = len(numbers) // shape[0]
    return [_shaped(numbers[at * size : (at + 1) * size], shape[1:]) for at in range(shape[0])]


def key_map(init: Mapping[str, Any]) -> KeyMap:
    """The keys of a session that is played by hand, from its `init`."""
    space = init["action_space"]
    shape = space.get("shape") or ()
    if space["kind"] == "multi_discrete":
        inner, shape = space["nvec"], []
        while isinstance(inner, list):
            shape.append(len(inner))
            inner = inner[0]
    return KeyMap(init["controls"], shape)


@dataclass
class Tally:
    """The episodes that were played to their end."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def add(self, episode: Message) -> None:
        """Count an `episode_done`."""
        self.returns.append(float(episode["return"]))
        self.lengths.append(int(episode["length"]))

    @property
    def mean(self) -> float | None:
        """The mean return; None before the first episode."""
        return sum(self.returns) / len(self.returns) if self.returns else None


@dataclass(frozen=True)
class Trained:
    """What a policy has reached in an environment that is played by hand."""

    algo: str
    run_id: str
    mean_return: float


def best_trained(env_id: str, var: Path | None = None) -> Trained | None:
    """The best of the policies trained here on an environment; None when there is none."""
    found = (
        Trained(facts.algo or "a policy", facts.run_id, facts.mean_return)
        for facts in islice(each_policy(var), _MOST_POLICIES)
        if facts.env_id == env_id and facts.mean_return is not None and facts.run_id
    )
    return max(found, key=lambda one: one.mean_return, default=None)


def recorded_text(recorded: Mapping[str, Any] | None) -> str:
    """What became of a recording, in words; empty where nothing was recorded."""
    if not recorded:
        return ""
    files = [Path(file) for file in recorded.get("files", ())]
    kinds = " and ".join(file.suffix for file in files)
    kept = f"Recorded {files[0].with_suffix('')} ({kinds})." if files else ""
    return " ".join(filter(None, (kept, recorded.get("problem"))))
