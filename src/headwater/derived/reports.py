"""Reports: what a refresh did, who is behind, and what a comparison with a recomputation found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from headwater.base import markup
from headwater.base.change import ChangeBatch, show_value
from headwater.base.errors import InputError

if TYPE_CHECKING:
    from headwater.base.frontier import Frontier

__all__ = ["Behind", "Mode", "Refresh", "Verification"]

Mode = Literal["noop", "incremental", "full"]
"""How a refresh was done: nothing to do; from the changes; or by recomputing everything."""

_SHOWN = 10


@dataclass(frozen=True)
class Behind:
    """An artefact that does not reflect the newest rows of what it reads.

    Parameters
    ----------
    name : str
        of the artefact
    lag : mapping of str to int or None
        for each source that it is behind, by how many versions; None where the source is missing
    built : bool
        False if it was never built

    >>> print(Behind("spend", {"orders": 3}), "and", Behind("big", built=False))
    `spend` is 3 versions behind `orders` and `big` was never built
    """

    name: str
    lag: Mapping[str, int | None] = field(default_factory=dict)
    built: bool = True

    def __str__(self) -> str:
        if not self.built:
            return f"`{self.name}` was never built"
        missing = [f"`{source}`" for source, versions in self.lag.items() if versions is None]
        behind = [
            f"{versions:,} version{'' if versions == 1 else 's'} behind `{source}`"
            for source, versions in self.lag.items()
            if versions is not None
        ]
        said = [f"is {', '.join(behind)}"] if behind else []
        said += [f"lacks its source {', '.join(missing)}"] if missing else []
        return f"`{self.name}` {', and '.join(said)}"

    def as_dict(self) -> dict[str, object]:
        """The same facts for ``--json``."""
        return {"name": self.name, "built": self.built, "lag": dict(self.lag)}


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """The report of one refresh.

    Parameters
    ----------
    before, after : Frontier
        what the artefact reflected, and reflects now; ``before <= after``
    mode : "noop", "incremental" or "full"
    rows_in : int
        rows read from the sources: of their changes, or in full mode of the tables
    rows_out : int
        rows of the artefact that were inserted or deleted (an update is both)
    seconds : float
        how long it took
    reason : str
        why it was done in this mode, for people
    name : str
        of the artefact
    upstream : sequence of Refresh
        the reports of the artefacts that it reads and that were refreshed before it, in that order
    behind : sequence of Behind
        artefacts that it reads, directly or through others, and that were left behind their own sources

    Examples
    --------
    >>> from headwater.base.frontier import Frontier
    >>> before, after = Frontier(t=1), Frontier(t=4)
    >>> print(Refresh(before=before, after=after, mode="incremental", rows_in=7, rows_out=2, seconds=0.01))
    incremental: t@1 -> t@4, 7 rows in, 2 rows out, 0.010 s
    """

    before: Frontier
    after: Frontier
    mode: Mode
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    reason: str = ""
    name: str = ""
    upstream: Sequence[Refresh] = ()
    behind: Sequence[Behind] = ()

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InputError.bad_argument("mode", self.mode, f"one of {', '.join(get_args(Mode))}")
        assert self.before <= self.after, "law 1: the frontier only grows"
        assert self.rows_in >= 0, "rows are counted"
        assert self.rows_out >= 0, "rows are counted"
        nothing = (self.before, 0) == (self.after, self.rows_out)
        assert self.mode != "noop" or nothing, "noop means that neither rows nor frontier moved"

    def __str__(self) -> str:
        moved = f"{self.before or 'nothing'} -> {self.after or 'nothing'}"
        where = moved if self.before != self.after else f"at {self.after or 'nothing'}"
        why = f" ({self.reason})" if self.reason else ""
        own = f"{self.mode}: {where}, {self.rows_in:,} rows in, {self.rows_out:,} rows out, {self.seconds:.3f} s{why}"
        first = (f"  first {one.name or 'another'}: {one}" for one in self.upstream)
        return "\n".join([own, *first, *(f"  behind: {one}" for one in self.behind)])

    def _repr_html_(self) -> str:
        return markup.facts(
            f"{self.name or 'refresh'}: {self.mode}",
            [
                ("before", self.before),
                ("after", self.after),
                ("rows in", f"{self.rows_in:,}"),
                ("rows out", f"{self.rows_out:,}"),
                ("seconds", f"{self.seconds:.3f}"),
                ("reason", self.reason),
                ("first", "\n".join(f"{one.name}: {one}" for one in self.upstream)),
                ("behind", "\n".join(map(str, self.behind))),
            ],
        )

    def as_dict(self) -> dict[str, object]:
        """The same facts for ``--json``."""
        return {
            "name": self.name,
            "mode": self.mode,
            "before": dict(self.before),
            "after": dict(self.after),
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "seconds": round(self.seconds, 6),
            "reason": self.reason,
            "upstream": [one.as_dict() for one in self.upstream],
            "behind": [one.as_dict() for one in self.behind],
        }


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The artefact held against a recomputation at its frontier.

    Parameters
    ----------
    frontier : Frontier
        where the two were compared
    missing : ChangeBatch
        rows the artefact lacks, weighted by how often: all of them, or the first thousand of many
    extra : ChangeBatch
        rows the artefact has too many of, weighted by how often: all of them, or the first thousand of many
    behind : sequence of Behind
        artefacts that it reads, directly or through others, and that are behind their own sources: it is right about
        what they hold, and they do not hold the newest rows
    missing_rows, extra_rows : int
        how many rows are missing, and too many, in all; by default those that are listed
    rows, expected_rows : int
        how many rows the artefact has, and how many it should have
    partitions : int
        how many groups of rows were compared by their digests (`headwater.derived.digest`)
    exact_partitions : int
        how many of them were compared row by row, since their digests were not the same
    """

    frontier: Frontier
    missing: ChangeBatch
    extra: ChangeBatch
    behind: Sequence[Behind] = ()
    missing_rows: int = -1
    extra_rows: int = -1
    rows: int = 0
    expected_rows: int = 0
    partitions: int = 1
    exact_partitions: int = 0

    def __post_init__(self) -> None:
        for name, listed in (("missing_rows", self.missing), ("extra_rows", self.extra)):
            if getattr(self, name) < 0:
                object.__setattr__(self, name, int(listed.weights.sum()))

    @property
    def equal(self) -> bool:
        """Whether the artefact is right: all its rows are those of the recomputation,
        up to the last digits of floats.
        """
        return self.missing_rows == 0 and self.extra_rows == 0

    def __str__(self) -> str:
        found = f"equal at {self.frontier}"
        if not self.equal:
            found = f"differs at {self.frontier}: {self.missing_rows:,} missing, {self.extra_rows:,} too many"
        return "\n".join([f"{found} ({self._extent()})", *(f"  upstream is behind: {one}" for one in self.behind)])

    def _extent(self) -> str:
        """What was compared."""
        said = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        if self.partitions > 1:
            said += f" in {self.partitions:,} partitions"
            said += f", {self.exact_partitions:,} of them compared row by row" if self.exact_partitions else ""
        return said

    def _repr_html_(self) -> str:
        shown = [
            ("rows", f"{self.rows:,}, {self.expected_rows:,} expected"),
            ("partitions", f"{self.partitions:,}, {self.exact_partitions:,} of them compared row by row"),
            ("missing", _first_rows(self.missing, self.missing_rows)),
            ("too many", _first_rows(self.extra, self.extra_rows)),
            ("upstream is behind", "\n".join(map(str, self.behind))),
        ]
        return markup.facts(str(self).split("\n", maxsplit=1)[0], shown)

    def as_dict(self) -> dict[str, object]:
        """The same facts for ``--json``, with a few of the rows that differ."""
        return {
            "equal": self.equal,
            "frontier": dict(self.frontier),
            "rows": self.rows,
            "expected_rows": self.expected_rows,
            "missing_rows": self.missing_rows,
            "extra_rows": self.extra_rows,
            "partitions": self.partitions,
            "exact_partitions": self.exact_partitions,
            "missing": _shown_rows(self.missing),
            "extra": _shown_rows(self.extra),
            "behind": [one.as_dict() for one in self.behind],
        }


def _shown_rows(rows: ChangeBatch) -> list[dict[str, object]]:
    """A few rows with how often they come, each value as text."""
    table = rows.to_arrow().slice(0, _SHOWN)
    columns = {name: list(map(show_value, table.column(i))) for i, name in enumerate(rows.schema.names)}
    weights = rows.weights.tolist()
    return [
        {"row": {name: values[i] for name, values in columns.items()}, "times": weights[i]}
        for i in range(table.num_rows)
    ]


def _first_rows(rows: ChangeBatch, total: int) -> str:
    """A few rows with how often they come, for people."""
    table = rows.to_arrow()
    lines = [str(row) for row in table.slice(0, _SHOWN).to_pylist()]
    return "\n".join([*lines, f"… {total:,} rows in all"] if table.num_rows > _SHOWN else lines)
