"""The environment: what derived artefacts need of the lake around them, as a few functions.

The rooms of artefacts do not know the facade of the lake, nor each other. Queries are computed by one room and Spark's
analyzer lives in another; the facade passes them in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.storage import Storage
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table
from headwater.sql.functions.user import UserFunction
from headwater.sql.plan import Plan

if TYPE_CHECKING:
    from headwater.spark.types import SparkSession

__all__ = ["Environment"]


@dataclass(frozen=True, slots=True)
class Environment:
    """The lake, as derived artefacts see it.

    Parameters
    ----------
    root : Storage
        where the lake lies
    table : callable
        the table of a name, in whatever case it is written; it need not exist
    artefacts : callable
        the names of everything that is derived in this lake, each with the name of its kind
    recorded : callable
        those of them that have no table of their own (`record_log`)
    check_free : callable
        raises if a table of that name would lie inside another
    drop : callable
        deletes a table with its files
    compute : callable
        the rows of a plan, given what its relations stand for; the text is for errors
    analyze : callable, optional
        Spark's analyzed plan of a text, as JSON
    session : callable, optional
        the Spark session of the lake, where it has one
    functions : mapping
        the user's functions that are registered, by their names in lower case
    training_set : callable, optional
        labels with the features that were known for them: ``lake.training_set``
    """

    root: Storage
    table: Callable[[str], Table]
    artefacts: Callable[[], Mapping[str, str]]
    recorded: Callable[[], Mapping[str, str]]
    check_free: Callable[[str], None]
    drop: Callable[[str], None]
    compute: Callable[[Plan, Mapping[str, Snapshot | Relation], str], pa.RecordBatchReader]
    analyze: Callable[[str], str] | None = None
    session: Callable[[], SparkSession] | None = None
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    training_set: Callable[..., Any] | None = None

    def names(self, kind: str) -> list[str]:
        """The names of the artefacts of a kind, sorted."""
        return sorted(name for name, of in self.artefacts().items() if of == kind)

    def owns(self, name: str, storage: Storage) -> bool:
        """Whether a table lies in this lake; one that is attached lies elsewhere."""
        return storage.url == self.root.child(name.replace(".", "/")).url
