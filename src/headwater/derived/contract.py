"""The derived contract: what a view, a feature table, a search index and an online table have in common.

The problem: each of them is a copy that must follow its sources through updates, deletes, crashes and rewrites, and
each kind could be subtly wrong in its own way. The idea: all are a `Derived`, a function of tables that states the
`Frontier` it reflects, and all obey the same eight laws, tested once (`headwater.testing.DerivedContract`):

1. The frontier only grows.
2. Data and frontier become visible in the same atomic step.
3. `refresh` is idempotent: doing it again changes nothing.
4. Refreshing from a to b and then to c equals refreshing from a to c.
5. The result equals recomputing it from scratch at its frontier.
6. A crash at any point leaves a or b, never something between.
7. A commit that only rewrites files (OPTIMIZE, ``dataChange=false``) changes no answer; work may be done.
8. A source that was dropped and made again, repartitioned, or whose column is another one of the same name, is noticed:
   never silently mixed.

**One commit point.** A refresh may write whatever it likes before, but it becomes true by exactly ONE atomic write,
which names the frontier and the state that belongs to it. What was written before that and never named is an orphan, to
be swept later; what comes after it must be unable to change the answer. So after a crash there is nothing to repair:
the newest commit says which state is the true one. Laws 2, 3 and 6 follow from this rule, and are tested all the same.

A `Derived` is a handle: opening the artefact afresh, as another process would, gives another handle on the same durable
state. A frontier without entries means that the artefact has never been built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.base.packages import required
from headwater.derived.reports import Refresh, Verification

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.base.frontier import Frontier
    from headwater.derived.plan import RefreshPlan

__all__ = ["Derived"]


class Derived(ABC):
    """A function of tables whose result is kept, and which states the frontier that the result reflects."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the artefact."""

    @property
    @abstractmethod
    def definition(self) -> str:
        """What it is derived from its sources by, for people."""

    @property
    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """The tables it is a function of."""

    @property
    def coverage(self) -> float:
        """How much of its sources, at its frontier, it answers from what it keeps, from 0 to 1.

        Below 1 the answer is right all the same, and slower: an index searches files that it does not cover.
        """
        return 1.0 if self.frontier else 0.0

    @property
    @abstractmethod
    def frontier(self) -> Frontier:
        """The version of each source that the data reflects; without entries while it was never built.

        It belongs to the same state as `read`: whoever reads one and then the other through one handle, with no
        refresh between, gets a matching pair.
        """

    @abstractmethod
    def lag(self) -> Mapping[str, int | None]:
        """By how many versions it is behind each source whose rows have changed; None for a source that is gone."""

    @abstractmethod
    def plan(self, until: Frontier | None = None) -> RefreshPlan:
        """What `refresh` would do now, and why."""

    @abstractmethod
    def refresh(self, until: Frontier | None = None) -> Refresh:
        """Bring the artefact forward to ``until`` (default: the newest version of each source).

        It never goes back: sources that ``until`` lacks, or names at an older version, stay where they are. When
        the call returns, the new state is durable and visible; when it raises, the old or the new state is.
        """

    @abstractmethod
    def read(self) -> pa.RecordBatchReader:
        """The data, as of `frontier`, as a stream of record batches in bounded memory.

        The stream keeps to one state, also where the artefact is refreshed while it is read. Each call gives a new
        stream; whoever wants everything at once takes `to_arrow`.
        """

    @abstractmethod
    def recompute(self, at: Frontier) -> pa.RecordBatchReader:
        """What `read` should give at ``at``, from the sources alone, by the plainest way there is, as a stream."""

    def to_arrow(self) -> pa.Table:
        """The data as an Arrow table."""
        return self.read().read_all()

    def to_pandas(self) -> Any:
        """The data as a pandas DataFrame."""
        required("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The data as a polars DataFrame."""
        return required("polars", "to_polars()").from_arrow(self.to_arrow())

    def to_pylist(self) -> list[dict[str, Any]]:
        """The data as one dict per row."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.read().__arrow_c_stream__(requested_schema)

    @abstractmethod
    def drop(self) -> list[str]:
        """Delete it with all that belongs to it, and give the names of what was deleted."""

    def verify(self) -> Verification:
        """Hold the data against `recompute` at its frontier (law 5), in bounded memory; floats may differ in their last
        digits.
        """
        from headwater.derived.comparison import compare  # with kernels, which most processes never need

        at = self.frontier
        return compare(at, expected=lambda: self.recompute(at), actual=self.read, name=self.name)
