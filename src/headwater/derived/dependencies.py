"""Dependencies: which derived artefacts read which, in what order they are refreshed, and in what order they are
dropped.

Only names are compared here. A caller says what an artefact reads, and None of anything that is not derived: tables,
and names that stand for nothing. Each artefact comes once, however many ways lead to it. A cycle, which `cycle`
refuses and two definitions at the same time could still make, ends the walk where it closes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Reads", "dependants", "reachable", "upstream_first"]

Reads = Callable[[str], Sequence[str] | None]
"""The names that a derived artefact reads; None of what is not derived."""


def upstream_first(names: Iterable[str], reads: Reads) -> list[str]:
    """Some artefacts and all that they read, directly or through others; each after those that it reads.

    >>> reads = {"d": ["b", "c"], "b": ["t"], "c": ["t", "b"]}.get
    >>> upstream_first(["d"], reads)
    ['b', 'c', 'd']
    """
    found: dict[str, bool] = {}  # whether all that it reads has been seen, in the order in which that became so
    for name in names:
        waiting = [(name, iter(reads(name) or ()))] if name not in found and reads(name) is not None else []
        if waiting:
            found[name] = False
        while waiting:
            at, sources = waiting[-1]
            source = next(sources, None)
            if source is None:
                waiting.pop()
                del found[at]
                found[at] = True
            elif source not in found and (below := reads(source)) is not None:
                found[source] = False
                waiting.append((source, iter(below)))
    return list(found)


def reachable(name: str, reads: Reads) -> set[str]:
    """Everything that an artefact reads, directly or through others, derived or not.

    >>> sorted(reachable("b", {"b": ["a"], "a": ["t", "s"]}.get))
    ['a', 's', 't']
    """
    found: set[str] = set()
    waiting = list(reads(name) or ())
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += reads(source) or ()
    return found


def dependants(names: Iterable[str], sources: Mapping[str, Sequence[str]]) -> list[str]:
    """The artefacts that read some names, directly or through others; each before those that it reads, as they can be
    dropped.

    >>> dependants(["t"], {"d": ["b", "c"], "b": ["t"], "c": ["b"], "x": ["s"]})
    ['d', 'c', 'b']
    """
    taken = set(names)
    found: set[str] = set()
    while more := {n for n, read in sources.items() if n not in found and not taken.isdisjoint(read)}:
        found |= more
        taken |= more
    order = upstream_first(sorted(found - set(names)), lambda name: sources[name] if name in found else None)
    return [name for name in reversed(order) if name not in set(names)]
