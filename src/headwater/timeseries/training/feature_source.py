"""What the features of a training set come from: tables, views, feature tables, and streams of rows of one of them.

Each is a series: rows with a time, by some columns. A feature table knows both; a stream says them; of a plain table
they are those of the labels. To be joined by commit time a source has to have a history, so a stream may filter and
select the rows of one table, and no more: what an operator gives for a row depends on others, which came and went at
other moments. Kept as a feature table (``lake.features``), such a stream has a history of its own: what was published
when.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headwater.base.errors import InputError, UnsupportedError
from headwater.lake.port import OpenLake
from headwater.lake.published import check_built, kind_of
from headwater.timeseries.features.definition import WORDS, Definition
from headwater.timeseries.node import Node, Ordering, RowWise
from headwater.timeseries.operators.clip import Clip
from headwater.timeseries.operators.computed import Computed
from headwater.timeseries.operators.known_asof import SINCE, UNTIL
from headwater.timeseries.operators.narrow import Filter, Project
from headwater.timeseries.operators.time_filter import TimeFilter
from headwater.timeseries.querying import quoted
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.stream import Stream
from headwater.timeseries.training.file_history import FileHistory
from headwater.timeseries.training.table_history import TableHistory

__all__ = ["FeatureSource"]

_KEEPING = (Filter, TimeFilter, Computed, Clip, Project)


@dataclass(frozen=True)
class FeatureSource:
    """A plan over tables, and what its rows are looked up by."""

    name: str
    plan: Node
    ordering: Ordering

    @classmethod
    def of(cls, given: Any, lake: OpenLake, time: str, by: tuple[str, ...], number: int) -> FeatureSource:
        """A source that a user names; ``time`` and ``by`` are those of the labels."""
        if isinstance(given, Stream):
            if given.ordering is None:
                raise InputError.bad_argument(
                    "features", given, 'streams with a time: lake.stream(…, time="ts", by=[…])'
                )
            leaf = _table_of(given.plan)
            name = f"features_{number}" if leaf is None else leaf.table.name
            return cls(name, given.plan, given.ordering)
        named = given if isinstance(given, str) else getattr(given, "name", None)
        if not isinstance(named, str):
            raise InputError.bad_argument("features", given, "names of tables, views or feature tables, or streams")
        table = lake.named(named)
        base = table.snapshot
        check_built(table.name, base)
        source = DeltaSource(table.pinned_to(base), tuple(base.schema.names))
        ordering: Ordering | None = Ordering(time, by)
        if kind_of(base) == WORDS.name:
            meant = Definition.of(base)
            assert meant is not None, "its kind says so"
            ordering = meant.ordering or ordering
        assert ordering is not None
        known = {column.lower() for column in source.names}
        missing = [column for column in ordering.columns if column.lower() not in known]
        if missing:
            expected = f'a stream that says what `{missing[0]}` is there: lake.stream("{table.name}", time=…, by=[…])'
            raise InputError.bad_argument("features", table.name, expected)
        found = Stream(source).ordered(ordering.time, by=ordering.by, tiebreak=ordering.tiebreak)
        assert found.ordering is not None
        return cls(table.name, source, found.ordering)

    def with_history(self, earliest: int | None) -> Node:
        """The plan over all rows that there have been since a moment, with when each was visible."""
        leaf = _table_of(self.plan)
        if leaf is None:
            what = _first_other(self.plan)
            raise UnsupportedError.operation(
                f"a training set at a known time over `{what}`",
                "what it gives for a row depends on other rows, which came and went at other moments",
                "keep the stream as a feature table, lake.features(name, function), and give its name",
            )
        history = FileHistory.of(leaf.snapshot, self.name, earliest)
        return _over(self.plan, TableHistory(history, self.name, leaf.names))


def _table_of(plan: Node) -> DeltaSource | None:
    """The table whose rows a plan filters and selects; None if it does more."""
    while isinstance(plan, _KEEPING):
        plan = plan.inputs[0]
    return plan if isinstance(plan, DeltaSource) else None


def _first_other(plan: Node) -> str:
    while isinstance(plan, _KEEPING):
        plan = plan.inputs[0]
    return plan.line()


def _over(plan: Node, history: TableHistory) -> Node:
    """The same filters and columns over other rows, whose own columns are handed on."""
    if isinstance(plan, DeltaSource):
        return history
    assert isinstance(plan, RowWise)
    below = _over(plan.inputs[0], history)
    if isinstance(plan, Project):
        return replace(plan, input=below, columns={**plan.columns, SINCE: quoted(SINCE), UNTIL: quoted(UNTIL)})
    return plan.with_inputs(below)
