"""A relation: rows that a query can scan though they are no table: a change feed,
or a table with its rows' addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from headwater.sql.conjuncts import Conjunct

__all__ = ["Relation"]


class Relation(Protocol):
    """Columns, and rows that can be read more than once."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that a query may name."""
        ...

    def read(self, columns: Sequence[str], conjuncts: Sequence[Conjunct]) -> pa.RecordBatchReader:
        """The rows with these columns; those that break a conjunct may be left out, since the query drops them."""
        ...
