"""Aggregate: one row for each key, of what its rows come to.

Linear aggregates are sums, kept as vectors of weights in a trace by key (`headwater.incremental.aggregates.sums`): a
change is added, and the old and new values are made of the old and new sums. Aggregates that are no sums have *stages*
beside them: extremes, quantiles, modes, and whole groups. What is DISTINCT goes through a tally first, which says what
its change is among the distinct rows.

The output changes by -(the old row) and +(the new row) of each key touched, where they differ. A key without rows has
no row; but without keys there is one row from the first step on, whatever the input, as in SQL. Nulls in keys are a
group; zeros of floats are one key, and so are NaNs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.incremental.aggregates.aggregation import Aggregation, Extreme, Linear, Stage, Words, failed, place
from headwater.incremental.aggregates.extremes import Extremes
from headwater.incremental.aggregates.general import General, Groups
from headwater.incremental.aggregates.mode import Mode, Modes
from headwater.incremental.aggregates.quantile import Quantile, Quantiles
from headwater.incremental.aggregates.sums import Request, Sums, gated
from headwater.incremental.aggregates.sums_of_table import SumsOfTable
from headwater.incremental.aggregates.tally import Tally, float_words, normalised
from headwater.incremental.aggregates.user import Derivation, UserLinear
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.operators.fused import Fused
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.packing import Owners
from headwater.incremental.partitions import RunMaker
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet
from headwater.kernels.accumulate import COUNT, SUM_WORD
from headwater.kernels.finish import changes, finish

__all__ = ["Aggregate", "Load"]

_WORTH_PIECES = 32_768
"""From how many rows on a step in pieces, some of them on another thread, is quicker than one call."""


class Aggregate(Node):
    """GROUP BY ``keys`` with aggregates."""

    kind: ClassVar[Kind] = "cogroup"

    def __init__(
        self,
        source: Node,
        keys: Sequence[str],
        aggregations: Sequence[Aggregation],
        *,
        sql: str = "",
        first_shard: bool = True,
    ) -> None:
        schema = source.layout.schema
        fields = [schema.field(k) for k in keys] + [a.field for a in aggregations]
        super().__init__(
            [source],
            Layout(pa.schema(fields), keys=len(keys)),
            label="aggregate",
            detail=", ".join(a.detail.replace("\0", "") for a in aggregations)
            + (" by " + ", ".join(keys) if keys else ""),
            sql=sql,
        )
        columns = [c for a in aggregations for c in (*a.arguments, *([a.where] if a.where else []))]
        arguments = [c for c in dict.fromkeys(columns) if c not in keys]
        self._arrangement = Arrangement(source.layout, [*keys, *arguments], keys=len(keys))
        self._floats = float_words(self._arrangement.target, len(keys))
        self._aggregations = tuple(aggregations)
        own = [a for a in aggregations if isinstance(a, UserLinear)]
        self._derivation = Derivation(self._arrangement.target, own) if own else None
        self._feeds: list[tuple[tuple[object, ...], Tally]] = []
        self._stages: list[tuple[Stage, int]] = []
        self._plan_sums()
        self._plan_stages()
        self._plan_finish()
        self._fused = self._plan_fused()
        self._given = False
        self._first_shard = first_shard

    # -- plans -----------------------------------------------------------------------------------------------------

    @property
    def _arranged(self) -> Layout:
        return self._arrangement.target if self._derivation is None else self._derivation.target

    def _feed(self, a: Aggregation) -> int:
        """Which feed an aggregate reads: 0 is the input, the others are its distinct rows."""
        if not a.distinct:
            return 0
        what = (frozenset(a.arguments), a.where)
        for i, (known, _) in enumerate(self._feeds):
            if known == what:
                return i + 1
        self._feeds.append((what, Tally(self._arranged, a.arguments, a.where)))
        return len(self._feeds)

    def _plan_sums(self) -> None:
        linear = [a for a in self._aggregations if isinstance(a, Linear)]
        self._requests: dict[str, list[Request]] = {}
        for a in linear:
            feed = self._feed(a)
            where = None if feed else a.where
            self._requests[a.name] = [Request(feed, gated(x, where)) for x in a.accumulators]
        for quantile in self._aggregations:
            if isinstance(quantile, Quantile):
                self._feed(quantile)
        layouts = [self._arranged, *(tally.layout for _, tally in self._feeds)]
        wanted = [r for some in self._requests.values() for r in some]
        self._sums = Sums(layouts, wanted, remember=not self.layout.keys)

    def _plan_stages(self) -> None:
        groups: dict[tuple[object, ...], list[Aggregation]] = {}
        for a in self._aggregations:
            if isinstance(a, Extreme):
                groups.setdefault((Extreme, a.shared), []).append(a)
            elif isinstance(a, Quantile):
                groups.setdefault((Quantile, a.column, a.where, a.distinct), []).append(a)
            elif isinstance(a, Mode):
                groups.setdefault((Mode, a.column, a.where), []).append(a)
            elif isinstance(a, General):
                groups.setdefault((General, a.arguments, a.order, a.needed, a.where), []).append(a)
        at = self._sums.extra
        for (what, *_), some in groups.items():
            feed = self._feed(some[0]) if what is Quantile else 0
            stage = self._staged(what, some, feed, at)
            self._stages.append((stage, feed))
            at += stage.accumulators
        self._sums.close(at - self._sums.extra)

    def _staged(self, what: object, some: Sequence[Aggregation], feed: int, at: int) -> Stage:
        arranged = self._feeds[feed - 1][1].layout if feed else self._arranged
        sums, output = self._sums.layout, self.layout
        if what is Extreme:
            return Extremes(arranged, sums, output, wanted=[a for a in some if isinstance(a, Extreme)], at=at)
        if what is Quantile:
            return Quantiles(arranged, sums, output, wanted=[a for a in some if isinstance(a, Quantile)], at=at)
        if what is Mode:
            return Modes(arranged, sums, output, wanted=[a for a in some if isinstance(a, Mode)], at=at)
        return Groups(arranged, output, wanted=[a for a in some if isinstance(a, General)])

    def _plan_finish(self) -> None:
        recipes = []
        self._sums_of: list[Linear] = []
        self._general: list[tuple[Placed, Linear]] = []
        for placed, a in zip(self.layout.columns[self.layout.keys :], self._aggregations, strict=True):
            if not isinstance(a, Linear):
                continue
            at = [self._sums.at(r) for r in self._requests[a.name]]
            if a.recipe is None or at[0] is None or at[-1] is None:
                self._general.append((placed, a))
                continue
            recipes.append((a.recipe, at[0], at[-1], placed.word, placed.null_word, placed.null_bit))
            self._sums_of.append(a)
        self._recipes = np.array(recipes, dtype=np.int64).reshape(len(recipes), 6)
        self._key_words = sum(c.words for c in self.layout.columns[: self.layout.keys]) + 1
        first = self.layout.columns[0].word
        self._shift = first - self._sums.layout.columns[0].word if self.layout.keys else 0

    def _plan_fused(self) -> Fused | None:
        """The whole step as one call, where all parts of it are of fixed width."""
        planned = self._sums.planned()
        stages = [stage for stage, _ in self._stages]
        if planned is None or len(self._floats) or self._derivation is not None or self._general or len(stages) > 1:
            return None
        matrices, numbers = planned
        values = None
        if stages:
            stage = stages[0]
            if not isinstance(stage, Extremes) or not stage.fixed:
                return None
            more, others, values = stage.planned()
            matrices |= more
            numbers |= others
        moving = self._arrangement.moving
        matrices |= {"moves": moving.moves, "bits": moving.bits, "makings": moving.target.makings}
        matrices["recipes"] = self._recipes
        numbers |= {
            "moved": int(not self._arrangement.same),
            "arranged_width": moving.target.width,
            "finish_words": self._key_words,
            "finish_shift": self._shift,
        }
        return Fused(matrices, numbers, output=self.layout, sums=self._sums.trace, values=values)

    @property
    def compared(self) -> frozenset[str] | None:
        """The columns whose values count one by one, where all others are only counted and added up as whole numbers;
        None where rows have to be seen as they are.
        """
        if self._stages or self._feeds or self._derivation is not None:
            return None
        found = set(self.layout.names[: self.layout.keys])
        for request in (r for some in self._requests.values() for r in some):
            if request.accumulator.what not in (COUNT, SUM_WORD):
                return None
            found.update(request.accumulator.true)
        return frozenset(found)

    # -- a step ----------------------------------------------------------------------------------------------------

    @property
    def restless(self) -> bool:  # type: ignore[override]
        """Is there a row to be given, though no row may come?"""
        return not self.layout.keys and self._first_shard and not self._was_given()

    def _was_given(self) -> bool:
        self._given = self._given or self._sums.given()
        return self._given

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        many = len(deltas[0].rows) >= _WORTH_PIECES and bool(self._stages)
        if self._fused is not None and not many and self._fused.is_due():
            if not len(deltas[0].rows):
                return self.empty
            found = self._fused.step(deltas[0])
            if found is not None:
                return found
        delta = self._normal(deltas[0])
        if not len(delta) and not self.restless:
            return self.empty
        fed = [delta, *(tally.step(delta) for _, tally in self._feeds)]
        for stage, feed in self._stages:
            if many and isinstance(stage, Extremes):
                stage.begin(fed[feed])
        touched = self._sums.accumulated(fed) if len(delta) else self._sums.nothing()
        return self._changed(touched, fed, deltas[0].owners)

    def _normal(self, delta: ZSet) -> ZSet:
        """A change of the input by key, with the columns that are read."""
        found = normalised(self._arrangement.apply(delta), self._floats)
        return found if self._derivation is None else self._derivation.apply(found)

    def _changed(self, touched: ZSet, fed: Sequence[ZSet], owners: Owners) -> ZSet:
        """The change of the output, given what is added to the sums of the keys touched."""
        sums = self._sums
        n = len(touched)
        old = sums.old(touched)
        out = np.zeros((2 * n, self.layout.width), dtype=np.int64)
        for stage, feed in self._stages:
            stage.step(fed[feed], touched, old, out)
        payload = sums.layout.payload
        bad = finish(touched.rows, payload, old, self._recipes, self._key_words, self._shift, out)
        if bad >= 0:
            raise self._with_key(failed(self._sums_of[bad], "the sum does not fit a bigint"), touched, old)
        given = bool(self.layout.keys) or self._was_given()
        sums.stage(touched, given=not given)
        try:
            owners = (*owners, *self._finish_general(touched, old, out))
        except ExpressionError as error:
            raise self._with_key(error, touched, old) from None
        if self.layout.keys:
            count = changes(touched.rows, payload, old, out)
        else:
            before = np.array([[int(given)]], dtype=np.int64)
            count = changes(1 - before, 0, before, out)
        owners += tuple(o for stage, _ in self._stages for o in stage.owners())
        return ZSet(self.layout, out[:count], owners, net=True)

    # -- a table at once -------------------------------------------------------------------------------------------

    def loading(self, expected: int) -> Load | None:
        """Takes a whole table in pieces, while there is no state; None where it has to be given as one step."""
        sums = self._sums.loading()
        stages = [stage for stage, _ in self._stages]
        if sums is None or self._feeds or not all(isinstance(stage, Extremes) for stage in stages):
            return None
        return Load(self, sums, [stage for stage in stages if isinstance(stage, Extremes)], expected)

    def _with_key(self, error: ExpressionError, touched: ZSet, old: Words) -> ExpressionError:
        """The error with the first key whose value cannot be given: halves are tried until it is alone."""
        if not self.layout.keys:
            return error
        begin, end = 0, len(touched)
        while end - begin > 1:
            middle = (begin + end) // 2
            begin, end = (begin, middle) if self._fails(touched, old, begin, middle) is not None else (middle, end)
        out = self._fails(touched, old, begin, end)
        if out is not None:
            row = ZSet(self.layout, out[1:], touched.owners).to_arrow().to_pylist()[0]
            error.key = {name: row[name] for name in self.layout.names[: self.layout.keys]}
        return error

    def _fails(self, touched: ZSet, old: Words, begin: int, end: int) -> Words | None:
        """What was written of some keys, if the value of one of them cannot be given."""
        some, sums = touched.filtered(np.arange(begin, end)), old[begin:end]
        out = np.zeros((2 * (end - begin), self.layout.width), dtype=np.int64)
        payload = self._sums.layout.payload
        bad = finish(some.rows, payload, sums, self._recipes, self._key_words, self._shift, out) >= 0
        try:
            self._finish_general(some, sums, out)
        except ExpressionError:
            bad = True
        return out if bad else None

    def _finish_general(self, touched: ZSet, old: Words, out: Words) -> Owners:
        """Fill the columns of the aggregates that have no recipe."""
        if not self._general:
            return ()
        both = np.concatenate([old, old + touched.rows[:, self._sums.layout.payload :]])
        found = self._sums.read(touched, both)
        owners: Owners = ()
        for placed, a in self._general:
            values = a.finish([found[r] for r in self._requests[a.name]])
            place(out, placed, values)
            owners += values.owners
        return owners

    def commit(self) -> None:
        if self._fused is not None:
            self._fused.commit()
        self._sums.trace.commit()
        for _, tally in self._feeds:
            tally.commit()
        for stage, _ in self._stages:
            stage.commit()

    def rollback(self) -> None:
        if self._fused is not None:
            self._fused.rollback()
        self._sums.trace.rollback()
        for _, tally in self._feeds:
            tally.rollback()
        for stage, _ in self._stages:
            stage.rollback()

    def traces(self) -> Mapping[str, Trace]:
        found = {"sums": self._sums.trace}
        for _, tally in self._feeds:
            found |= tally.traces()
        for stage, _ in self._stages:
            found |= stage.traces()
        return found


class Load:
    """A table on its way into an aggregate: sums grow with the keys, and values are sorted in partitions."""

    def __init__(self, node: Aggregate, sums: SumsOfTable, stages: Sequence[Extremes], expected: int) -> None:
        self._node, self._sums, self._stages = node, sums, stages
        self._values = [stage.loading(expected) for stage in stages]
        self._owners: dict[int, object] = {}

    def feed(self, rows: ZSet) -> None:
        """Take rows in."""
        delta = self._node._normal(rows)
        if not len(delta.rows):
            return
        self._sums.feed(delta)
        if len(self._node._sums.layout.slots):
            self._owners |= {id(o): o for o in delta.owners}
        for stage, values in zip(self._stages, self._values, strict=True):
            values.feed(stage.values(delta))

    def finish(self, store: RunMaker | None) -> ZSet:
        """The answer, with the state staged."""
        node = self._node
        touched = node._sums.summed(self._sums, tuple(self._owners.values()))
        if not len(touched):
            if not node.restless:
                return node.empty
            touched = node._sums.nothing()
        for stage, values in zip(self._stages, self._values, strict=True):
            stage.loaded(values.finish(store))
        nothing = ZSet.empty(node._arranged)
        return node._changed(touched, [nothing] * len(node._stages or [0]), touched.owners)
