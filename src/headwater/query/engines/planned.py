"""Engines that compute plans: the text is read once, for all of them.

A plan is Spark's meaning already resolved, so an engine only has to write it in its own SQL (`run`); where it cannot,
it raises `Refused` and no row is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.query.engines.engine import Rows, Running
from headwater.query.engines.matches import has_match, run_with_matches, without_matches
from headwater.query.pinned import Pinned, Relations
from headwater.query.sources import Source
from headwater.sql.fragment import Fragment
from headwater.sql.matching import PatternPlan
from headwater.sql.nodes import Refused
from headwater.sql.plan import Match, Plan, Scan
from headwater.sql.query import parse_query

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake

__all__ = ["PlannedEngine"]


class PlannedEngine(ABC):
    """What DuckDB and DataFusion have in common."""

    name: str
    narrows: ClassVar[bool] = False
    """Whether it takes just the rows of a table that an index names."""

    def run(self, plan: Plan, sources: Mapping[Scan, Source], text: str) -> Running:
        """Begin to compute a plan; an error that shows at once is raised here, a later one by the reader."""
        if has_match(plan):
            return run_with_matches(self.compute, plan, sources, text)
        return self.compute(plan, sources, text)

    @abstractmethod
    def compute(self, plan: Plan, sources: Mapping[Scan, Source], text: str) -> Running:
        """The same for a plan without matches, which no engine knows."""

    @abstractmethod
    def own_plan(self, plan: Plan, sources: Mapping[Scan, Source], *, analyze: bool = False) -> str:
        """The engine's own plan, as text; ``analyze`` runs it first, to count rows and time."""

    def plan(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> tuple[Plan, dict[Scan, Source]]:
        """A query, resolved, and what its scans read."""
        plan, pinned = self._resolved(lake, fragment, relations)
        return plan, pinned.sources(plan, narrowing=self.narrows)

    def _resolved(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> tuple[Plan, Pinned]:
        pinned = Pinned(lake, relations)
        with fragment.placed():
            plan = parse_query(
                fragment.text,
                pinned.schema,
                fragment.parameters,
                lambda name, arguments: pinned.function(name, arguments).schema,
                lake.user_functions.values(),
            )
        return plan, pinned

    def start(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> Running:
        plan, sources = self.plan(lake, fragment, relations)
        whole = fragment.whole or fragment.text
        try:
            return self.run(plan, sources, whole)
        except Refused as refused:
            raise ExpressionError.refused(whole, refused.what, refused.hint, refused.position) from None

    def rows(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> Rows:
        running = self.start(lake, fragment, relations)
        return Rows(running.reader, running.close)

    def schema(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> pa.Schema:
        return self._resolved(lake, fragment, relations)[0].schema

    def explain(self, lake: DerivingLake, fragment: Fragment, mode: str) -> str:
        plan, sources = self.plan(lake, fragment, {})
        lines = [plan.dump().rstrip(), ""]
        lines += [f"{scan.relation}: {source.describe()}" for scan, source in sources.items()]
        if mode.upper() in ("EXTENDED", "FORMATTED", "ANALYZE"):
            for one in plan.walk():
                if isinstance(one, Match):
                    lines += ["", PatternPlan(one).text()]
            given = dict(sources)
            own = without_matches(plan, given, self.compute, fragment.text)
            lines += ["", f"{self.name}:", self.own_plan(own, given, analyze=mode.upper() == "ANALYZE")]
        return "\n".join(lines).rstrip() + "\n"
