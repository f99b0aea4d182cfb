"""An episode that a person plays, kept: a trajectory that `numpy.load` opens without pickle, and a video."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
import zlib
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.analytics.film import Film, require_av
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import UserError

FORMAT = 1
_CHUNK = 1 << 20
_QUICK = 1
_KEPT_KINDS = "biuf"
"""Kinds of numbers that an array keeps as they are; all else is kept as JSON."""


class Column:
    """One part of the observations, packed as it comes: pictures of half an hour would not fit in memory."""

    def __init__(self, first: Any) -> None:
        array = np.asarray(first)
        self._numbers = array.dtype.kind in _KEPT_KINDS
        self.dtype, self._shape = array.dtype, array.shape
        self._packer = zlib.compressobj(_QUICK)
        self._packed: list[bytes] = []
        self._texts: list[str] = []
        self._rows = 0

    def add(self, value: Any) -> None:
        """Keep the next row; ValueError when it is of another kind or size than the first."""
        if not self._numbers:
            self._texts.append(value if isinstance(value, str) else json.dumps(value, default=str))
            return
        row = np.asarray(value)
        if row.shape != self._shape or not np.can_cast(row.dtype, self.dtype, "same_kind"):
            raise ValueError(
                f"an observation is {row.dtype} of shape {row.shape}, and the first was {self.dtype} "
                f"of shape {self._shape}"
            )
        self._packed.append(self._packer.compress(row.astype(self.dtype).tobytes()))
        self._rows += 1

    def write(self, archive: zipfile.ZipFile, name: str) -> None:
        """Put the rows into an .npz file."""
        if not self._numbers:
            _write_array(archive, name, np.array(self._texts))
            return
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self._rows, *self._shape)}
        with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_2_0(file, header)
            for part in self._unpacked():
                file.write(part)

    def _unpacked(self) -> Iterator[bytes]:
        unpacker = zlib.decompressobj()
        for part in [*self._packed, self._packer.flush()]:
            data = unpacker.decompress(part, _CHUNK)
            while data:
                yield data
                data = unpacker.decompress(unpacker.unconsumed_tail, _CHUNK)
        yield unpacker.flush()


def _write_array(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The parts of an observation, named by where they are: `observations.image`."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}")
    elif isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from _leaves(part, f"{name}.{place}")
    else:
        yield name, value


class EpisodeRecording:
    """One episode from its beginning."""

    def __init__(self, folder: Path, about: dict[str, Any], seed: int, fps: float) -> None:
        """`about` is what the files say of environment and versions."""
        self._folder, self._about, self._seed = folder, about, seed
        self._film: Film | None = Film(fps)
        self._columns: dict[str, Column] = {}
        self._actions: list[Any] = []
        self._rewards: list[float] = []
        self._ends: list[tuple[bool, bool]] = []
        self._whole = True
        """Whether all observations so far could be kept."""
        self.problem = ""
        """Why something of it is not kept."""
        try:
            require_av("A video")
        except UserError as error:
            self._give_up_film(f"{error} The trajectory is recorded without one.")

    def observe(self, obs: Any) -> None:
        """Keep an observation: the first one, then one for each step."""
        if not self._whole:
            return
        try:
            for name, value in _leaves(obs, "observations"):
                if not self._actions and name not in self._columns:
                    self._columns[name] = Column(value)
                self._columns[name].add(value)
        except (KeyError, TypeError, ValueError) as error:
            self._whole = False
            self.problem = f"The trajectory is not recorded: {' '.join(str(error).split())}."

    def act(self, action: Any, reward: float, terminated: bool, truncated: bool) -> None:
        """Keep the step that led to the newest observation."""
        self._actions.append(np.array(action))
        self._rewards.append(reward)
        self._ends.append((terminated, truncated))

    def shoot(self, picture: Any) -> None:
        """Keep a picture."""
        if self._film is None:
            return
        try:
            self._film.add(picture)
        except Exception as error:
            self._give_up_film(f"The video is off: {type(error).__name__}: {' '.join(str(error).split())}.")

    def _give_up_film(self, why: str) -> None:
        self._film, self.problem = None, why

    def save(self) -> dict[str, Any]:
        """Write what there is; gives the files, and what is wrong. Nothing where no step was taken."""
        if not self._actions:
            return {}
        files: list[str] = []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = self._free_name()
            for suffix, pack in ((".npz", self._trajectory), (".mp4", self._video)):
                content = pack()
                if content:
                    write_atomic(self._folder / f"{name}{suffix}", content)
                    files.append(str(self._folder / f"{name}{suffix}"))
        except OSError as error:
            self.problem = f"The recording cannot be written to {self._folder}: {error.strerror}."
        return {"files": files, "problem": self.problem or None}

    def _free_name(self) -> str:
        """The name of the files without a suffix."""
        env = re.sub(r"[^A-Za-z0-9]+", "-", str(self._about["env_id"])).strip("-")
        name = f"{env}_seed-{self._seed}_{time.strftime('%Y%m%d-%H%M%S')}"
        used = {path.stem for path in self._folder.glob(f"{name}*")}
        return next(
            one for one in chain([name], (f"{name}-{number}" for number in count(2))) if one not in used
        )

    def _trajectory(self) -> bytes:
        if not self._whole:
            return b""
        data = io.BytesIO()
        terminated, truncated = zip(*self._ends, strict=True)
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=_QUICK) as archive:
            for name, column in self._columns.items():
                column.write(archive, name)
            arrays = {
                "actions": np.stack(self._actions),
                "rewards": np.array(self._rewards, np.float64),
                "terminated": np.array(terminated),
                "truncated": np.array(truncated),
                "seed": np.array(self._seed, np.int64),
                "format": np.array(FORMAT),
                **{name: np.array(value) for name, value in self._about.items()},
            }
            for name, array in arrays.items():
                _write_array(archive, name, array)
        return data.getvalue()

    def _video(self) -> bytes:
        if self._film is None or not self._film.frames:
            return b""
        return self._film.finish()
