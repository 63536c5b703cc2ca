"""Held runs: a trace whose stored runs are read where they lie, for somebody who only wants to know what is new.

A task of another runtime steps a circuit once, on state that many tasks read at the same time. It may neither merge
those runs nor write them again; what it has to say is which rows its step adds. `hold` gives a trace such runs, and
`fresh` what came since as one run. Runs may have rows of keys that are other tasks': who looks up its own keys does
not meet them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.base.errors import UnsupportedError
from headwater.incremental.run import Bound, Run, merged
from headwater.incremental.spine import Spine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.incremental.sweep import Gone
    from headwater.incremental.trace import Trace

__all__ = ["fresh", "hold"]


class _HeldSpine(Spine):
    """A spine that takes runs and never merges."""

    __slots__ = ("held",)

    def __init__(self, runs: Sequence[Run]) -> None:
        super().__init__()
        self.runs = list(runs)
        self.held = frozenset(map(id, runs))

    def push(self, run: Run, bound: Bound | None) -> None:
        self.runs.append(run)

    def collect(self) -> bool:
        return False

    def sweep(self, gone: Gone, more: list[Run]) -> None:
        raise AssertionError("what is held is not swept")


def hold(trace: Trace, runs: Sequence[Run], bound: Bound | None = None) -> None:
    """Let a trace that is empty have these runs, as they are."""
    trace.load([])
    trace.spine = _HeldSpine(runs)
    trace.bound = bound
    trace.reaches(runs)


def fresh(trace: Trace) -> Run | None:
    """What a trace has got since `hold`; None if nothing."""
    spine = trace.spine
    runs = trace.runs
    if not isinstance(spine, _HeldSpine) or trace.spine is not spine:
        why = "the weights of its rows come near to what 64 bits hold"
        raise UnsupportedError.operation("a step on held state", why, "refresh the view with engine='local'")
    new = [run for run in runs if id(run) not in spine.held]
    if len(new) > 1:
        new = [merged(new)]
    return new[0] if new and len(new[0]) else None
