"""The row patterns of a query, to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.query.engines.duckdb import DuckDBEngine
from headwater.sql.fragment import Fragment, Parameters
from headwater.sql.matching import PatternPlan
from headwater.sql.plan import Match

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake

__all__ = ["patterns_of"]


def patterns_of(lake: DerivingLake, text: str, parameters: Parameters | None) -> list[PatternPlan]:
    """The patterns of a query, in the order in which they are read."""
    fragment = Fragment(text) if parameters is None else Fragment(text, parameters)
    plan, _ = DuckDBEngine().plan(lake, fragment, {})
    return [PatternPlan(one) for one in plan.walk() if isinstance(one, Match)]
