"""Names of models in a lake: ``schema.model``, or ``model`` alone in the schema `default`.

A lake has no databases, and its schemas are the first part of a name. `default` is the lake's root, as it is the schema
of tables without one in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import ComponentName, Policy, RelationType
from dbt_common.exceptions import DbtRuntimeError

__all__ = ["DATABASE", "ROOT", "HeadwaterRelation"]

DATABASE = "lake"
"""What dbt calls the lake: it has no name of its own in SQL."""
ROOT = "default"


@dataclass(frozen=True, eq=False, repr=False)
class HeadwaterRelation(BaseRelation):  # type: ignore[misc]
    """A table or view of the lake."""

    quote_character: str = "`"
    include_policy: Policy = field(default_factory=lambda: Policy(database=False))
    replaceable_relations: Any = field(default_factory=lambda: frozenset({RelationType.MaterializedView}))
    require_alias: bool = False

    def __post_init__(self) -> None:
        if self.path.database not in (None, "", DATABASE):
            raise DbtRuntimeError(
                f"a lake has no databases: leave `database: {self.path.database}` out, or attach the tables of another "
                "lake to this one (ATTACH TABLE)"
            )

    def render(self) -> str:
        """The name in SQL."""
        hidden = ComponentName.Schema if self.path.schema == ROOT else None
        return ".".join(part for key, part in self._render_iterator() if part is not None and key != hidden)

    @property
    def lake_name(self) -> str:
        """The name in the lake."""
        return str(self.identifier) if self.schema in (None, "", ROOT) else f"{self.schema}.{self.identifier}"
