"""Matches: MATCH_RECOGNIZE over the rows of a key, kept up to date.

The groups that a change touches, or the stretches of them that it can reach, are searched as they were and as they are.
The search is that of the query engines (`headwater.sql.matching`), over the same order, so a view and its recomputation
agree row for row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.incremental.operators.cogroup import Cogroup, Groups
from headwater.incremental.packing import unpack
from headwater.incremental.zset import ZSet
from headwater.sql.matching import Matcher

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.operators.arrange import Arrange
    from headwater.incremental.operators.reach import Reach
    from headwater.sql.plan import Match

__all__ = ["Matches"]


class Matches(Cogroup):
    """The rows of ``match``, whose columns are those of the source by their names."""

    def __init__(self, source: Arrange, match: Match, layout: Layout, *, reach: Reach, sql: str = "") -> None:
        detail = "" if reach.mode is None else "by stretches"
        super().__init__([source], layout, function=self._matched, reach=reach, label="match", detail=detail, sql=sql)
        self._matcher = Matcher(match)

    def _matched(self, given: Sequence[Groups]) -> ZSet:
        groups = given[0]
        if not len(groups):
            return self.empty
        columns = unpack(groups.layout, groups.rows[groups.at])
        named = dict(zip(groups.layout.names, columns, strict=True))
        rows = pa.table([named[name] for name in self._matcher.schema.names], schema=self._matcher.schema)
        found = self._matcher.run(rows, groups.offsets)
        plain = pa.Table.from_arrays(found.columns, schema=self.layout.schema)
        return ZSet.packed(self.layout, plain, np.ones(plain.num_rows, np.int64))
