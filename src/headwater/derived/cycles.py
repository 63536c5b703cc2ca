"""Cycles: an artefact may read others, but not itself through them.
No order of refreshes would bring such a ring to rest.
"""

from __future__ import annotations

from headwater.derived.dependencies import Reads

__all__ = ["cycle"]


def cycle(name: str, source: str, reads: Reads) -> list[str] | None:
    """The ring that an artefact would close by reading ``source``: names, each of which reads the next; None if none.

    >>> cycle("a", "c", {"c": ["t", "b"], "b": ["a"]}.get)
    ['a', 'c', 'b', 'a']
    >>> cycle("a", "t", {"c": ["a"]}.get) is None
    True
    """
    path = _path(source, name, reads, set())
    return None if path is None else [name, *path]


def _path(name: str, to: str, reads: Reads, seen: set[str]) -> list[str] | None:
    if name == to:
        return [to]
    if name in seen:
        return None
    seen.add(name)
    for source in reads(name) or ():
        path = _path(source, to, reads, seen)
        if path is not None:
            return [name, *path]
    return None
