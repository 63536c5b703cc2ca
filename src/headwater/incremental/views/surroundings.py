"""What a view needs of the lake around it, as a few functions, so that this room need not know the rooms beside it.

Queries are computed by the room next door, and Spark's analyzer lives in another one. The facade of the lake passes them in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.base.storage import Storage
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table
from headwater.sql.functions.user import UserFunction
from headwater.sql.plan import Plan

__all__ = ["Surroundings"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The lake, as views see it.

    Parameters
    ----------
    root : Storage
        where the lake lies
    table : callable
        the table of a name, in whatever case it is written; it need not exist
    compute : callable
        the rows of a plan, given what its relations stand for; the text is for errors
    check_free : callable
        raises if a table of that name would lie inside another
    drop : callable
        deletes a table with its files
    views : callable
        the names of the lake's views
    analyze : callable, optional
        Spark's analyzed plan of a text, as JSON
    functions : mapping
        the user's functions that are registered, by their names in small letters
    """

    root: Storage
    table: Callable[[str], Table]
    compute: Callable[[Plan, Mapping[str, Snapshot | Relation], str], pa.RecordBatchReader]
    check_free: Callable[[str], None]
    drop: Callable[[str], None]
    views: Callable[[], list[str]]
    analyze: Callable[[str], str] | None = None
    functions: Mapping[str, UserFunction] = field(default_factory=dict)

    def owns(self, name: str, storage: Storage) -> bool:
        """Whether a table lies in this lake; one that is attached lies elsewhere."""
        return storage.url == self.root.child(name.replace(".", "/")).url
