"""Places: what a process has of an artefact, from one refresh to the next."""

from __future__ import annotations

import os
import threading

from headwater.base.storage import Storage
from headwater.derived.state_folder import StateFolder

__all__ = ["Place", "place_of"]


class Place:
    """What this process has of an artefact: a lock between threads, and the folder whose lock is between processes."""

    def __init__(self, root: Storage, path: str) -> None:
        self.guard = threading.RLock()
        self.folder = StateFolder(root, path)
        self.suspicious = True
        """Whether files may lie about that an attempt left which did not end: it has not been looked yet."""


_places: dict[tuple[int, str, str], Place] = {}
_guard = threading.Lock()


def place_of(root: Storage, path: str) -> Place:
    """The place of the artefact whose files lie there."""
    key = (os.getpid(), root.url, path)  # a process that was forked has its own
    with _guard:
        if key not in _places:
            _places[key] = Place(root, path)
        return _places[key]
