"""The lake that the function of a feature table is given: its tables as streams, each at the version that a refresh is
about.

It has one method. What a feature table cannot follow (files, frames, old versions) is refused when the function asks
for it, and a stream of it cannot be run: the function says what to compute, and is called whenever that has to be
known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.base.errors import HeadwaterError, InputError
from headwater.derived.environment import Environment
from headwater.lake.conform import as_rows, is_spark_frame
from headwater.lake.published import check_built
from headwater.lake.snapshot import Snapshot
from headwater.timeseries.features.function import Build, name_of
from headwater.timeseries.node import Node
from headwater.timeseries.operators.values import Values
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.stream import Stream

__all__ = ["SourceLake", "built"]


class SourceLake:
    """Tables of a lake as streams, at some versions."""

    def __init__(
        self,
        environment: Environment,
        at: Callable[[str], Snapshot | None],
        schemas: Mapping[str, pa.Schema],
        *,
        unbuilt: bool = False,
    ) -> None:
        self._environment, self._at, self._schemas, self._unbuilt = environment, at, schemas, unbuilt

    def stream(
        self,
        source: Any,
        *,
        time: str | None = None,
        by: str | Sequence[str] = (),
        tiebreak: str | Sequence[str] = (),
        **options: Any,
    ) -> Stream:
        """The rows of a table, a view or another feature table; or an Arrow table, whose rows are part of the
        definition.
        """
        for name, given in options.items():
            if given is not None:
                raise InputError.bad_argument(
                    name, given, "none: a feature table follows the newest versions of tables"
                )
        made = Stream(self._plan(source))
        if time is not None:
            return made.ordered(time, by=by, tiebreak=tiebreak)
        if by or tiebreak:
            raise InputError.bad_argument("time", None, "the column that each series is ordered by")
        return made

    def _plan(self, source: Any) -> Node:
        if not isinstance(source, str):
            if is_spark_frame(source) or not hasattr(source, "__arrow_c_stream__"):
                raise InputError.bad_argument(
                    "source", source, "the name of a table of the lake: its changes are followed"
                )
            rows = as_rows(source)
            return Values(pa.Table.from_batches(rows.batches, rows.schema))
        return self._table(source)

    def _table(self, name: str) -> Node:
        table = self._environment.table(name)
        base, schema = self._at(table.name), self._schemas.get(table.name)
        if base is None:  # it is read from before its first version on
            assert schema is not None, "a table that is not known is looked at"
            return Values(pa.schema([f.with_nullable(True).remove_metadata() for f in schema]).empty_table())
        if not self._unbuilt:
            check_built(table.name, base)
        found = DeltaSource(table.pinned_to(base), tuple(base.schema.names))
        if schema is None:
            return found
        known = {n.lower(): n for n in found.names}
        return found.narrowed([known[n.lower()] for n in schema.names if n.lower() in known])


def built(build: Build, lake: SourceLake) -> Stream:
    """The stream that a function gives."""
    try:
        found = build(lake)
    except HeadwaterError:
        raise
    except Exception as error:
        what = f"{name_of(build)}, which raised {type(error).__name__}: {error}"
        raise InputError.bad_argument("build", what, "a function that takes a lake and gives a stream") from error
    if not isinstance(found, Stream):
        raise InputError.bad_argument(
            "build", f"{name_of(build)}, which gave {found!r}", "a function that gives a stream"
        )
    if found.lake is not None:
        expected = (
            "a function that makes its streams by the lake that it is given: their versions are those of a refresh"
        )
        raise InputError.bad_argument("build", name_of(build), expected)
    return found
