"""Keeps None and True alive under PySide6, which gives back references to them that it never took.

PySide6 6.12 is built for interpreters in which these objects never die, as from Python 3.12 on. In an older
one every call without a result and every signal takes a reference away; after some thousands the
interpreter ends itself with "deallocating None". So many references are added here that none are missed.
"""

from __future__ import annotations

import ctypes
import sys

_REFERENCES = 1 << 60


def keep_singletons() -> None:
    """Make None, True and False as good as immortal; where they are, or when repeated, it does nothing."""
    if sys.version_info >= (3, 12):
        return
    for one in (None, True, False, NotImplemented, ...):
        # The count of references is the first word of every object.
        count = ctypes.c_ssize_t.from_address(id(one))
        if count.value < _REFERENCES // 2:
            count.value += _REFERENCES
