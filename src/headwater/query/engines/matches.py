"""MATCH_RECOGNIZE on engines that do not know it: they sort the rows, our matcher goes over them, and they go on.

Before a plan is computed, each match in it becomes a scan. Its rows come while they are read: the engine computes what
is below the match, in the match's order, and `sql.matching` makes the answer of it, partition by partition, so no more
is held than the largest partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.query.engines.engine import Running
from headwater.query.sources import Source, StreamedSource
from headwater.sql.matching import Matcher, sorted_for
from headwater.sql.nodes import Node, Refused, SubqueryCall, rewrite
from headwater.sql.plan import Match, Plan, Recursion, Reference, Scan, With
from headwater.sql.plan.rebuilding import with_children, with_expressions

__all__ = ["Compute", "has_match", "run_with_matches", "without_matches"]

Sources = dict[Scan, Source]
Compute = Callable[[Plan, Mapping[Scan, Source], str], Running]


def has_match(plan: Plan) -> bool:
    """Is there a MATCH_RECOGNIZE anywhere in a plan?"""
    return any(isinstance(one, Match) for one in plan.walk())


def run_with_matches(compute: Compute, plan: Plan, sources: Mapping[Scan, Source], text: str) -> Running:
    """Compute a plan that has matches by an engine that computes plans without."""
    given: Sources = dict(sources)
    changed = without_matches(plan, given, compute, text)
    made = [source for source in given.values() if isinstance(source, MatchedSource)]

    @contextmanager
    def meant() -> Iterator[None]:
        try:
            yield
        except Exception:
            # An engine tells an error of its input in words of its own.
            for source in made:
                for error in source.errors:
                    raise (error.in_query(text) if isinstance(error, ExpressionError) else error) from None
            raise

    with meant():
        running = compute(changed, given, text)

    def batches() -> Iterator[pa.RecordBatch]:
        with meant():
            yield from running.reader

    def cancel() -> None:
        # The searches first: an engine that waits for rows of one is interrupted only when it gets them.
        for source in made:
            source.cancel()
        running.cancel()

    def close() -> None:
        for source in made:
            source.stopped.set()
        running.close()
        for source in made:
            source.close()

    return Running(pa.RecordBatchReader.from_batches(running.reader.schema, batches()), cancel, close)


def without_matches(plan: Plan, sources: Sources, compute: Compute, text: str) -> Plan:
    """The plan with a scan in the place of each match; ``sources`` gets what the scans read."""
    return _Cutting(sources, compute, text).cut(plan, ())


@dataclass(frozen=True, eq=False)
class MatchedSource(StreamedSource):
    """The rows of a match, as they are found."""

    matcher: Matcher
    stopped: Event
    below: Plan
    sources: Mapping[Scan, Source]
    compute: Compute
    text: str
    running: list[Running] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        return self.matcher.output

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            running = self.compute(self.below, self.sources, self.text)
            self.running.append(running)
            yield from self.matcher.batches(running.reader)
        except Exception as error:
            self.errors.append(error)
            raise

    def cancel(self) -> None:
        """Stop what runs: the engine below, and the search."""
        self.stopped.set()
        for running in list(self.running):
            running.cancel()

    def close(self) -> None:
        """Give back what was opened."""
        while self.running:
            self.running.pop().close()

    def describe(self) -> str:
        below = "; ".join(source.describe() for source in self.sources.values())
        return f"rows of a match, found in {below}"


@dataclass
class _Cutting:
    sources: Sources
    compute: Compute
    text: str

    def cut(self, plan: Plan, definitions: tuple[tuple[str, Plan], ...]) -> Plan:
        """A plan whose matches are scans; ``definitions`` are those of WITH that it may read."""
        if not has_match(plan):
            return plan
        if isinstance(plan, Recursion) and has_match(plan.step):
            raise Refused("MATCH_RECOGNIZE in the step of a recursion", "match the rows of the recursion above it")
        if isinstance(plan, With):
            own: list[tuple[str, Plan]] = []
            for name, definition in plan.definitions:
                own.append((name, self.cut(definition, (*definitions, *own))))
            return With(tuple(own), self.cut(plan.child, (*definitions, *own)))
        children = tuple(self.cut(child, definitions) for child in plan.children)
        made = with_children(plan, children)
        if isinstance(made, Match):
            return self._scan(made, definitions)
        return with_expressions(made, lambda node: self._inside(node, definitions))

    def _inside(self, node: Node, definitions: tuple[tuple[str, Plan], ...]) -> Node:
        def change(part: Node) -> Node | None:
            if isinstance(part, SubqueryCall) and has_match(part.plan):
                return replace(part, plan=self.cut(part.plan, definitions))
            return None

        return rewrite(node, change)

    def _scan(self, match: Match, definitions: tuple[tuple[str, Plan], ...]) -> Scan:
        below = sorted_for(match)
        if any(isinstance(one, Reference) for one in below.walk()):
            below = With(definitions, below)
        number = sum(isinstance(source, MatchedSource) for source in self.sources.values()) + 1
        columns = tuple(replace(a, name=a.key) for a in match.output)
        scan = Scan(f"match#{number}", None, None, columns)
        mine = {one: self.sources[one] for one in below.walk() if isinstance(one, Scan)}
        stopped = Event()
        matcher = Matcher(match, stopped=stopped.is_set)
        self.sources[scan] = MatchedSource(matcher, stopped, below, mine, self.compute, self.text)
        return scan
