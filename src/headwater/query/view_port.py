"""What the statements on materialized views need of a lake, beyond its tables.

Views are kept by a room beside this one, which `query` does not import. `CREATE`, `REFRESH`, `DROP MATERIALIZED VIEW`,
`SHOW VIEWS` and `DESCRIBE EXTENDED` reach them through the lake of their session. It is a protocol of its own, so that another
way to reach derived artefacts replaces this file and no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from headwater.derived.contract import Refresh
from headwater.lake.port import OpenLake
from headwater.lake.table import Table

__all__ = ["LakeWithViews", "MaterializedView", "ViewFacts"]


class MaterializedView(Protocol):
    """A query whose rows are kept in a table."""

    @property
    def table(self) -> Table: ...

    def refresh(self, *, full: bool = False, cascade: bool = True) -> Refresh: ...

    def drop(self) -> list[str]: ...


class ViewFacts(Protocol):
    """The state of a view, for people."""

    def facts(self) -> list[tuple[str, str]]:
        """Names and values, as DESCRIBE EXTENDED lists them."""


class LakeWithViews(OpenLake, Protocol):
    """An open lake that has materialized views."""

    def view(
        self,
        name: str,
        sql: str | None = None,
        *,
        policy: Literal["auto", "strict", "full"] = "auto",
        shards: int = 1,
        **options: Any,
    ) -> MaterializedView:
        """The view of that name; with a query, it is made or gets that query."""

    def views(self) -> list[str]:
        """The names of the views."""

    def drop_view(self, name: str, *, cascade: bool = False) -> list[str]:
        """Delete a view with its table and its state; returns the names, in the order of deletion."""

    def status(self, *names: str) -> Sequence[ViewFacts]:
        """How fresh some views are, or all."""
