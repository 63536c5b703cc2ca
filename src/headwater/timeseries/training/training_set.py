"""Training sets: each label with the features that a model could have known for it.

A row of features has two times: when it happened, and when it was committed. A join by the first alone takes rows that
came late, or were corrected afterwards, for what was known when the label was to be predicted: the model learns from
the future. With ``known_at`` a label is given the latest row up to its own time of those that the lake showed at that
moment. The commits of a Delta table say when each row was visible (`file_history`), so this is one join, whatever the
number of versions.

Without ``known_at`` the join is by time alone, over the tables as they are; `TrainingSet.report` says for how many
labels that gave something else than what was known at their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, UnsupportedError
from headwater.base.packages import required
from headwater.lake.port import OpenLake
from headwater.lake.transaction import Committed
from headwater.timeseries.aligning import check_alike
from headwater.timeseries.features.computing import Computation
from headwater.timeseries.node import Node, Ordering, RowKernel, RowWise
from headwater.timeseries.operators.asof import AsOf
from headwater.timeseries.operators.known_asof import KnownAsOf
from headwater.timeseries.operators.narrow import Project
from headwater.timeseries.querying import quoted
from headwater.timeseries.sources.opening import source_of
from headwater.timeseries.stream import Stream
from headwater.timeseries.times import time_field, time_numbers
from headwater.timeseries.training.feature_source import FeatureSource

if TYPE_CHECKING:
    from headwater.derived.environment import Environment

__all__ = ["LeakReport", "TrainingSet", "training_set"]

_KNOWN, _LEAKED = "__hw_known", "__hw_leaked"


@dataclass(frozen=True)
class LeakReport:
    """For how many labels a join by event time alone gives what was not known at their time.

    Parameters
    ----------
    rows : int
        labels
    leaked : int, optional
        labels with a feature that says something else than what was known at their time; None where that cannot be told
    by_source : mapping
        the same for each source of features
    unknown : mapping
        why it cannot be told of a source
    """

    rows: int
    leaked: int | None
    by_source: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        told = "it is not known how many" if self.leaked is None else f"{self.leaked:,}"
        share = f" ({self.leaked / self.rows:.1%})" if self.leaked and self.rows else ""
        lines = [f"{told} of {self.rows:,} labels{share} get by event time alone what was not known at their time"]
        lines += [f"  {name}: {count:,}" for name, count in self.by_source.items()]
        lines += [f"  {name}: not known, {why}" for name, why in self.unknown.items()]
        return "\n".join(lines)


class TrainingSet:
    """Labels with features; computed when it is asked for. Made by ``lake.training_set``."""

    def __init__(
        self, plan: Node, flagged: Node, sources: Sequence[str], unknown: Mapping[str, str], lake: Any
    ) -> None:
        self._plan, self._flagged, self._sources, self._unknown = plan, flagged, tuple(sources), dict(unknown)
        self._lake = lake

    @property
    def schema(self) -> pa.Schema:
        """The columns of the labels, and those of the features."""
        return self._plan.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @cached_property
    def _environment(self) -> Environment:
        found: Environment = self._lake.environment()
        return found

    def to_arrow(self) -> pa.Table:
        """All rows, as an Arrow table, in no particular order."""
        return Computation.of(self._plan).collect(self._environment, self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch, without ever holding all of them where Spark computes them."""
        return Computation.of(self._plan).batches(self._environment, self.schema)

    def to_pandas(self) -> Any:
        """All rows, for pandas."""
        required("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """All rows, for polars."""
        return required("polars", "to_polars()").from_arrow(self.to_arrow())

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows, as one dict per row."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def stream(self) -> Stream:
        """The rows as a stream, to go on with on Spark: ``.spark()``, ``.write(name)``, ``.write_parquet(folder)``."""
        return Stream(self._plan, lake=self._lake)

    def write(self, name: str, **options: Any) -> Committed | None:
        """Write the rows into a table of the lake, in one commit; by Spark's tasks where they are many."""
        if Computation.of(self._plan).engine == "spark":
            return self.stream().write(name, **options)
        found: Committed | None = self._lake.table(name).write(self.to_arrow(), **{"mode": "append", **options})
        return found

    def explain(self) -> str:
        """What would run, and where."""
        computed = Computation.of(self._plan)
        where = "in this process" if computed.engine == "local" else "by Spark"
        return f"{computed.rows:,} rows to read, computed {where}\n{_drawn(computed.plan)}"

    @cached_property
    def report(self) -> LeakReport:
        """For how many labels a join by event time alone gives what was not known at their time."""
        flags = [name for name in self._flagged.schema.names if name.startswith(_LEAKED)]
        any_flag = " OR ".join(quoted(name) for name in flags) or "false"
        texts = {f"n{i}": f"count_if({quoted(name)})" for i, name in enumerate(flags)}
        stream = Stream(self._flagged, lake=self._lake).agg(rows="count(*)", leaked=f"count_if({any_flag})", **texts)
        (found,) = Computation.of(stream.plan).collect(self._environment, stream.schema).to_pylist()
        known = [name for name in self._sources if name not in self._unknown]
        counts = {name: int(found[f"n{i}"]) for i, name in enumerate(known)}
        leaked = None if self._unknown and not known else int(found["leaked"])
        return LeakReport(int(found["rows"]), leaked, counts, self._unknown)

    def __repr__(self) -> str:
        return f"TrainingSet({', '.join(self.columns)})"


def _drawn(node: Node, depth: int = 0) -> str:
    lines = [f"{'  ' * depth}{node.line()}"]
    return "\n".join([*lines, *(_drawn(below, depth + 1) for below in node.inputs)])


def training_set(
    lake: Any,
    labels: Any,
    features: Any,
    *,
    time: str | None,
    by: str | Sequence[str] | None,
    known_at: Any,
    tolerance: Any,
) -> TrainingSet:
    """The training set of these labels; see ``lake.training_set``."""
    plan, ordering = _labels(lake, labels, time, by)
    field_ = time_field(plan.schema, ordering.time)
    given = [features] if isinstance(features, str | Stream) or hasattr(features, "definition") else list(features)
    if not given:
        raise InputError.bad_argument("features", features, "names of tables, views or feature tables, or streams")
    found = [FeatureSource.of(one, lake, ordering.time, ordering.by, n) for n, one in enumerate(given)]
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InputError.bad_argument("features", names, "each source once")
    for one in found:
        _check_times(plan, ordering, one)
    far = None
    if tolerance is not None:
        from headwater.base.spans import span

        far = span(tolerance, field_, "tolerance")
    if known_at is not None:
        plan = _with_known(plan, known_at, ordering)
        earliest = _earliest(lake, plan)
        for one in found:
            plan = _joined(plan, ordering, one, one.with_history(earliest), _KNOWN, far, None)
        kept = _without(plan, [_KNOWN])
        return TrainingSet(kept, kept, names, dict.fromkeys(names, "it is joined at a known time"), lake)
    return _by_event_time(lake, plan, ordering, found, far)


def _by_event_time(
    lake: Any, plan: Node, ordering: Ordering, found: Sequence[FeatureSource], far: int | None
) -> TrainingSet:
    kept, flagged, unknown = plan, plan, dict[str, str]()
    is_moment = pa.types.is_timestamp(plan.schema.field(ordering.time).type) or pa.types.is_date(
        plan.schema.field(ordering.time).type
    )
    for number, one in enumerate(found):
        kept = _plainly_joined(kept, ordering, one, far)
        if not is_moment:
            unknown[one.name] = f"`{ordering.time}` is no timestamp or date"
            continue
        try:
            history = one.with_history(None)
        except (InputError, UnsupportedError) as error:
            unknown[one.name] = error.message
            continue
        flagged = _joined(flagged, ordering, one, history, None, far, f"{_LEAKED}{number}")
    return TrainingSet(kept, flagged, [one.name for one in found], unknown, lake)


def _labels(lake: OpenLake, labels: Any, time: str | None, by: str | Sequence[str] | None) -> tuple[Node, Ordering]:
    stream = labels if isinstance(labels, Stream) else Stream(source_of(lake, labels), lake=lake)
    have = stream.ordering
    at = time if time is not None else have.time if have is not None else None
    if at is None:
        expected = "the column of the labels that says when each was to be predicted"
        raise InputError.bad_argument("time", None, expected)
    keys = by if by is not None else have.by if have is not None else ()
    ordering = stream.ordered(at, by=keys).ordering
    assert ordering is not None, "it was just made"
    return stream.plan, ordering


def _keys(plan: Node, one: FeatureSource) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns by which features are looked up, as the labels and as the features call them."""
    own = {name.lower(): name for name in plan.schema.names}
    missing = [name for name in one.ordering.by if name.lower() not in own]
    if missing:
        raise NotFoundError.column(missing[0], plan.schema.names, f"the labels, by which `{one.name}` is looked up")
    keys = tuple(own[name.lower()] for name in one.ordering.by)
    check_alike(plan.schema, one.plan.schema, list(zip(keys, one.ordering.by, strict=True)))
    return keys, one.ordering.by


def _check_times(plan: Node, ordering: Ordering, one: FeatureSource) -> None:
    """Refuse times that cannot be compared; timestamps without a zone are in UTC."""
    kinds = plan.schema.field(ordering.time).type, one.plan.schema.field(one.ordering.time).type
    if kinds[0] != kinds[1] and not any(
        all(map(alike, kinds)) for alike in (pa.types.is_timestamp, pa.types.is_integer)
    ):
        what = f"{ordering.time} {kinds[0]} and {one.ordering.time} {kinds[1]} of `{one.name}`"
        raise InputError.bad_argument("time", what, "times of one type; cast one of them")


def _joined(
    plan: Node,
    ordering: Ordering,
    one: FeatureSource,
    history: Node,
    known: str | None,
    far: int | None,
    leaked: str | None,
) -> Node:
    left, right = _keys(plan, one)
    return KnownAsOf(
        plan,
        history,
        ordering.time,
        one.ordering.time,
        left,
        right,
        suffix=f"_{one.name.rpartition('.')[2]}",
        tiebreak=one.ordering.tiebreak,
        known=known,
        tolerance=far,
        leaked=leaked,
    )


def _plainly_joined(plan: Node, ordering: Ordering, one: FeatureSource, far: int | None) -> Node:
    left, right = _keys(plan, one)
    return AsOf(
        plan,
        one.plan,
        ordering.time,
        one.ordering.time,
        left,
        right,
        suffix=f"_{one.name.rpartition('.')[2]}",
        tiebreak=one.ordering.tiebreak,
        tolerance=far,
    )


def _without(plan: Node, names: Sequence[str]) -> Node:
    return Project(plan, {name: quoted(name) for name in plan.schema.names if name not in names}, "")


def _earliest(lake: Any, plan: Node) -> int | None:
    """The first moment that is asked for."""
    stream = Stream(plan, lake=lake).agg(first=f"min({quoted(_KNOWN)})")
    (found,) = Computation.of(stream.plan).collect(lake.environment(), stream.schema).to_pylist()
    first: int | None = found["first"]
    return int(np.iinfo(np.int64).max) - 1 if first is None else first


# -- when it was known ------------------------------------------------------------------------------------------------


def _with_known(plan: Node, known_at: Any, ordering: Ordering) -> Node:
    """The labels with the moment, as a number of microseconds."""
    if isinstance(known_at, str) and known_at in plan.schema.names:
        kind = plan.schema.field(known_at).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise InputError.bad_argument("known_at", known_at, f"a column of timestamps, and this one is {kind}")
        return WithMoment(plan, known_at, None, 0)
    if isinstance(known_at, timedelta):
        kind = plan.schema.field(ordering.time).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise InputError.bad_argument("known_at", known_at, f"a column or a timestamp: `{ordering.time}` is {kind}")
        return WithMoment(plan, ordering.time, None, known_at // timedelta(microseconds=1))
    return WithMoment(plan, None, moment_of(known_at, plan.schema.names), 0)


def moment_of(known_at: Any, columns: Sequence[str] = ()) -> int:
    """A moment as a user writes it, in microseconds since 1970; without a zone it is in UTC."""
    found = known_at
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found)
        except ValueError:
            expected = f"a column of the labels ({', '.join(columns)}), or a timestamp such as 2026-01-31 12:00"
            raise InputError.bad_argument("known_at", known_at, expected) from None
    if not isinstance(found, datetime):
        raise InputError.bad_argument("known_at", known_at, "a column of the labels, a timestamp, or a delay")
    at = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@dataclass(frozen=True)
class WithMoment(RowWise):
    """The rows with the moment at which their features had to be known: that of a column, later by ``delay``, or one
    for all.
    """

    input: Node
    column: str | None
    moment: int | None
    delay: int

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema.append(pa.field(_KNOWN, pa.int64()))

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        return ((wanted - {_KNOWN}) | ({self.column} if self.column is not None else set()),)

    def line(self) -> str:
        return "known at " + (self.column or "one moment")

    def kernel(self) -> RowKernel:
        return _Moment(self.column, self.moment, self.delay)


@dataclass(frozen=True, slots=True)
class _Moment:
    column: str | None
    moment: int | None
    delay: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.column is None:
            return rows.append_column(_KNOWN, pa.array(np.full(rows.num_rows, self.moment, np.int64)))
        column = rows.column(self.column)
        times, there = time_numbers(column)
        found = times * (86_400_000_000 if pa.types.is_date(column.type) else 1) + self.delay
        # Nothing is known at no moment.
        known = found if there is None else np.where(there, found, np.iinfo(np.int64).min)
        return rows.append_column(_KNOWN, pa.array(known))
