"""Traffic: how much state was opened from run files, and how much was written to them, by trace.

A checkpoint has written what its manifest names and the one before did not, merged runs among it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headwater.incremental.manifest import RunEntry, TraceEntry

__all__ = ["Meter", "Traffic"]

Amount = tuple[int, int]
"""Rows and bytes."""
_NOTHING: Amount = (0, 0)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was opened and written by some time.

    >>> Traffic({"a": (3, 64)}, {}).since(Traffic({"a": (1, 32)}, {}))
    {'a': ((2, 32), (0, 0))}
    """

    read: Mapping[str, Amount] = field(default_factory=dict)
    written: Mapping[str, Amount] = field(default_factory=dict)

    def since(self, before: Traffic) -> dict[str, tuple[Amount, Amount]]:
        """What was opened and written after ``before``, of traces with either."""
        found = {}
        for name in {**self.read, **self.written}:
            read = _less(self.read.get(name, _NOTHING), before.read.get(name, _NOTHING))
            written = _less(self.written.get(name, _NOTHING), before.written.get(name, _NOTHING))
            if read != _NOTHING or written != _NOTHING:
                found[name] = read, written
        return found


class Meter:
    """Counts the traffic of a store."""

    def __init__(self) -> None:
        self._named: set[str] = set()
        self._read: dict[str, Amount] = {}
        self._written: dict[str, Amount] = {}

    @property
    def traffic(self) -> Traffic:
        """All of it, so far."""
        return Traffic(dict(self._read), dict(self._written))

    def knows(self, files: set[str]) -> None:
        """Run files that were written before, or by others."""
        self._named |= files

    def opened(self, trace: str, runs: Iterable[RunEntry]) -> None:
        """Count runs of a trace that were opened."""
        _count(self._read, trace, runs)

    def saved(self, traces: Mapping[str, TraceEntry]) -> None:
        """Count what a checkpoint has written; from now on its files are those that are known."""
        for name, entry in traces.items():
            _count(self._written, name, (run for run in entry.runs if run.file not in self._named))
        self._named = {run.file for entry in traces.values() for run in entry.runs}


def _less(amount: Amount, other: Amount) -> Amount:
    return amount[0] - other[0], amount[1] - other[1]


def _count(amounts: dict[str, Amount], name: str, runs: Iterable[RunEntry]) -> None:
    rows, size = amounts.get(name, _NOTHING)
    for run in runs:
        rows, size = rows + run.rows, size + run.nbytes
    amounts[name] = rows, size
