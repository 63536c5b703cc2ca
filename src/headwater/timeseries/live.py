"""Live streams: a stream's rows kept in a table while its sources go on, by a Structured Streaming query.

The rows are those of a feature table (`timeseries.features`): each refresh follows what has changed in the sources,
late rows and corrections too, and one commit makes the rows and the versions that they reflect true. So the output has
each change exactly once, and equals the batch answer over the tables so far, whoever is killed when. The query only
says when to refresh: it wakes at each version of a source, reads none of its rows, and needs no checkpoint to go on.

No operator needs a watermark, because none holds state: the rows that a change touches are computed again from the
source tables. What cannot be followed like that is refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

from headwater.base.errors import InputError, UnsupportedError
from headwater.lake.catalog import TABLE
from headwater.timeseries.features.following import NotFollowed, followed, leaves_of, with_leaves
from headwater.timeseries.features.kind import define
from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.sources.delta import DeltaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.derived.environment import Environment
    from headwater.derived.port import DerivingLake
    from headwater.timeseries.features.feature_table import FeatureTable
    from headwater.timeseries.features.source_lake import SourceLake
    from headwater.timeseries.stream import Stream

__all__ = ["StreamOverTables", "follow_table", "kept"]


class StreamOverTables:
    """A stream's plan as the function of a feature table: the same operators over the tables of a refresh.

    It is known to the process that made it; another one has to say ``stream.follow(into=…)`` again, with the same
    stream.
    """

    def __init__(self, plan: Node, ordering: Ordering | None) -> None:
        self.plan, self.ordering = plan, ordering
        self.__qualname__ = "<stream>"  # which nobody takes for a name to import

    def __call__(self, lake: SourceLake) -> Stream:
        from headwater.timeseries.stream import Stream

        def source(_: int, leaf: Node) -> Node:
            if not isinstance(leaf, DeltaSource):
                return leaf
            found = lake.stream(leaf.table.name).plan
            return found.narrowed(list(leaf.names)) if isinstance(found, DeltaSource) else found

        return Stream(with_leaves(self.plan, source), self.ordering)


def kept(stream: Stream, name: str, environment: Environment) -> FeatureTable:
    """The table that keeps a stream's rows, made if it is not there; an error for a stream that cannot be followed."""
    leaves = list(leaves_of(stream.plan))
    for leaf in leaves:
        if isinstance(leaf, DeltaSource):
            newest = environment.table(leaf.table.name).snapshot if leaf.table.name else None
            if newest is None or newest.where != leaf.snapshot.where:
                why = "it is not a table of the lake under a name of its own, so nobody says when it changes"
                raise UnsupportedError.operation(f"following `{leaf.line()}`", why, "attach it to the lake first")
        elif not isinstance(leaf, Values):
            why = "files, frames and other sources have no versions to follow"
            raise UnsupportedError.operation(f"following `{leaf.line()}`", why, "write it to a table of the lake")
    if not any(isinstance(leaf, DeltaSource) for leaf in leaves):
        raise InputError.bad_argument("stream", "rows that do not change", "a stream over tables of the lake")
    try:
        followed(narrowed(stream.plan), stream.ordering)
    except NotFollowed as error:
        hint = "write it again with stream.write(), or leave out what looks at all rows"
        raise UnsupportedError.operation("following this stream", str(error), hint) from None
    return define(name, StreamOverTables(stream.plan, stream.ordering), environment, policy="auto")


def follow_table(table: FeatureTable, lake: DerivingLake, *, every: str | None, available_now: bool) -> StreamingQuery:
    """A query that refreshes a feature table whenever a source has a new version; the first refresh is done before."""
    session = lake.spark
    if not hasattr(session, "sparkContext"):
        why = "on Spark Connect its function would run on the server, which does not know this process's tables"
        raise UnsupportedError.operation("follow()", why, "run it in a classic session, or call refresh() in a loop")
    tables = {name: lake.table(name) for name in _watched(lake, table.reads)}
    begin = {name: one.version + 1 for name, one in tables.items()}
    table.refresh()
    wakes = [
        one.spark_changes(starting_version=begin[name], columns=one.snapshot.schema.names[:1])
        for name, one in tables.items()
    ]
    frame: DataFrame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), wakes)

    def refresh(_: DataFrame, __: int) -> None:
        table.refresh()

    writer = frame.writeStream.foreachBatch(refresh).queryName(f"headwater follow {table.name}")
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    return writer.start()


def _watched(lake: Any, names: Iterable[str]) -> list[str]:
    """The tables whose commits matter: of what is derived itself, those that it reads."""
    found: dict[str, None] = {}
    for name in names:
        kind = lake.catalog.kind(name)
        below = [name] if kind == TABLE else _watched(lake, lake.derived(name).sources)
        found.update(dict.fromkeys(below))
    return list(found)
