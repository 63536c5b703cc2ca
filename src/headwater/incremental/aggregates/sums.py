"""Sums: the accumulators of all linear aggregates of a node, by key.

They are kept in one trace. A key has a row whose weights are its counts and sums (**part** 0), and, where doubles or
products are added up, one for each bucket of each exact sum (`headwater.kernels.floats`). A change of the input becomes
a change of these rows, and adding is all that ever happens to them, so any history that leads to the same rows leads to
the same sums, bit for bit.

Rows may come from several **feeds**: the input itself, and the input with each distinct row once. They are added up
into the same rows.

The first row of an aggregate without keys has to be given even if there are no rows. That it was given is remembered as
a row of part -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headwater.base.errors import ConstraintError
from headwater.incremental.aggregates.aggregation import Accumulator, Array, Words
from headwater.incremental.aggregates.sums_of_table import SumsOfTable
from headwater.incremental.layout import Layout
from headwater.incremental.packing import Owners
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet
from headwater.kernels import floats, probe
from headwater.kernels.accumulate import COUNT, FLOAT, OVERFLOW, PRODUCT, accumulate, accumulate_words, new_table

__all__ = ["ROWS", "Request", "Sums", "gated"]

ROWS = Accumulator(COUNT)
"""How many rows a key has; it is always the first accumulator."""

_KINDS = {"double": (floats.DOUBLE, 53), "float": (floats.DOUBLE, 53), "pair": (floats.PAIR, 128)}
_PART = "part"
_GIVEN = -1
_WORTH_TWO_PASSES = 16_384
_PIECE_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class Request:
    """An accumulator over the rows of a feed; feed 0 is the input itself."""

    feed: int
    accumulator: Accumulator


@dataclass(slots=True)
class _Feed:
    """The tables by which the kernel reads the rows of a feed."""

    layout: Layout
    gates: int
    conditions: Words
    specs: Words
    factors: Words


class Sums:
    """The accumulators that are asked for, and more words, from `Sums.extra` on, for whoever keeps answers in them.

    Parameters
    ----------
    feeds : sequence of Layout
        of the rows of each feed, which begin with the keys
    requests : sequence of Request
    remember : bool
        is it to be remembered that a row was given for no rows?
    """

    def __init__(self, feeds: Sequence[Layout], requests: Sequence[Request], *, remember: bool) -> None:
        wanted = list(dict.fromkeys([Request(0, ROWS), *requests]))
        self._words: dict[Request, slice] = {}
        self._products: dict[Request, int] = {}
        to = 0
        widest = 1
        for one in wanted:
            if one.accumulator.what in (FLOAT, PRODUCT):
                self._products[one] = len(self._products)
                widest = max(widest, 3, _limbs(feeds[one.feed], one.accumulator))
                continue
            self._words[one] = slice(to, to + one.accumulator.words)
            to += one.accumulator.words
        self.extra = to
        keyed = [feeds[0].schema.field(i) for i in range(feeds[0].keys)]
        self._parted = bool(self._products) or remember
        if self._parted:
            keyed.append(pa.field(_PART, pa.int64(), nullable=False))
        self._widest = widest
        self.layout = Layout(pa.schema(keyed), keys=feeds[0].keys)
        self.trace = Trace(self.layout)
        self._part_word = self.layout.columns[-1].word if self._parted else 0
        own = self.layout.key_parts
        part = np.array([[self._part_word, 0, -1]], dtype=np.int64)
        self._row_parts = np.concatenate([own, part]) if self._parted else own
        self._feeds = [self._planned(i, feed) for i, feed in enumerate(feeds)]
        self._rounded = np.array([i for r, i in self._products.items() if r.accumulator.what == FLOAT], dtype=np.int64)
        self._part_rows = np.zeros((0, 0), dtype=np.int64)
        self._part_hashes = np.zeros(0, dtype=np.uint64)

    def close(self, extra: int) -> None:
        """Say how many more words there are; until then `layout` is that of the keys."""
        weights = max(self.extra + extra, self._widest)
        self.layout = Layout(self.layout.schema, keys=self.layout.keys, weights=weights)
        self.trace = Trace(self.layout)

    def at(self, request: Request) -> int | None:
        """Where its words begin among the weights; None for sums that have parts."""
        return self._words[request].start if request in self._words else None

    def _planned(self, feed: int, layout: Layout) -> _Feed:
        gates: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        specs = []
        factors: list[tuple[int, int]] = []
        for one in [*self._words, *self._products]:
            if one.feed != feed:
                continue
            a = one.accumulator
            gate = gates.setdefault((a.present, a.true), len(gates))
            word = layout.column(a.columns[0]).word if a.columns else 0
            first = len(factors)
            if a.what == PRODUCT:
                factors += [(p.word, _KINDS.get(p.kind, (floats.WORD, 64))[0]) for p in map(layout.column, a.columns)]
            to = self._products[one] if one in self._products else self._words[one].start
            limbs = _limbs(layout, a) if a.what == PRODUCT else a.words
            specs.append((a.what, word, gate, to, first, len(factors), limbs))
        conditions = []
        for (present, true), gate in gates.items():
            masks: dict[int, int] = {}
            for placed in map(layout.column, present):
                if placed.nullable:
                    masks[placed.null_word] = masks.get(placed.null_word, 0) | (1 << placed.null_bit)
            conditions += [(gate, word, _signed(mask), 0) for word, mask in masks.items()]
            conditions += [(gate, layout.column(name).word, -1, 1) for name in true]
        return _Feed(layout, len(gates), _matrix(conditions, 4), _matrix(specs, 7), _matrix(factors, 2))

    def planned(self) -> tuple[dict[str, Words], dict[str, int]] | None:
        """Its part of the plan of a step in one call (`headwater.kernels.aggregate`);
        None if it has parts or other feeds.
        """
        if self._parted or len(self._feeds) > 1 or not self.layout.keys:
            return None
        feed, layout = self._feeds[0], self.layout
        keys = layout.columns[: layout.keys]
        matrices = {
            "key_parts": feed.layout.key_parts,
            "sums_key_parts": layout.key_parts,
            "sums_sort_parts": layout.sort_parts,
            "conditions": feed.conditions,
            "specs": feed.specs,
        }
        numbers = {
            "key_from": feed.layout.columns[0].word,
            "key_to": keys[0].word,
            "key_words": sum(c.words for c in keys),
            "key_mask": (1 << len(keys)) - 1,
            "gates": feed.gates,
            "sums_payload": layout.payload,
        }
        return matrices, numbers

    # -- a step ----------------------------------------------------------------------------------------------------

    def accumulated(self, deltas: Sequence[ZSet]) -> ZSet:
        """One row for each key that the first delta has, with what all of them add to its sums."""
        layout = self.layout
        n = len(deltas[0])
        whole = self.loading() if n >= _WORTH_TWO_PASSES else None
        if whole is not None:
            for start in range(0, n, _PIECE_ROWS):
                part = slice(start, start + _PIECE_ROWS)
                whole.feed(ZSet(deltas[0].layout, deltas[0].rows[part], hashes=deltas[0].hashes[part]))
            return self.summed(whole, deltas[0].owners)
        room = n * len(self._products) if len(deltas) == 1 else sum(map(len, deltas)) * len(self._products)
        table = new_table(n)
        hashes = np.empty(n, dtype=np.uint64)
        out = np.zeros((n, layout.width), dtype=np.int64)
        heads = np.full((n if room else 0, len(self._products)), -1, dtype=np.int32)
        links = np.empty(room, dtype=np.int32)
        groups = np.empty(room, dtype=np.int32)
        part_rows = np.zeros((room, layout.width), dtype=np.int64)
        keys = layout.columns[: layout.keys]
        key_to = keys[0].word if keys else 1
        key_words = sum(c.words for c in keys)
        known = parts = 0
        for feed, delta in zip(self._feeds, deltas, strict=True):
            if not len(feed.specs):
                continue
            what = (
                delta.hashes,
                delta.rows,
                delta.layout.key_parts,
                feed.layout.columns[0].word if keys else 1,
                key_to,
                key_words,
                (1 << len(keys)) - 1,
                layout.key_parts,
                feed.conditions,
                feed.gates,
                feed.specs,
            )
            if not self._products:
                known = accumulate_words(*what, layout.payload, table, known, hashes, out)
            else:
                known, parts = accumulate(
                    *what,
                    feed.factors,
                    layout.payload,
                    self._part_word,
                    table,
                    known,
                    hashes,
                    out,
                    heads,
                    links,
                    groups,
                    parts,
                    part_rows,
                )
            if known == OVERFLOW:
                raise ConstraintError.weight_overflow()
        if not parts:
            self._part_rows, self._part_hashes = part_rows[:0], hashes[:0]
            return ZSet(layout, out[:known], deltas[0].owners, hashes=hashes[:known])
        groups = groups[:parts]
        self._part_rows = part_rows[:parts]
        self._part_rows[:, 0] = out[groups, 0]
        self._part_rows[:, key_to : key_to + key_words] = out[groups, key_to : key_to + key_words]
        self._part_hashes = hashes[groups]
        return ZSet(layout, out[:known], deltas[0].owners, hashes=hashes[:known])

    def loading(self) -> SumsOfTable | None:
        """Adds up a whole table in pieces; None where sums have parts, or rows come from several feeds."""
        if self._products or len(self._feeds) > 1:
            return None
        feed = self._feeds[0]
        return SumsOfTable(self.layout, feed.layout, feed.conditions, feed.gates, feed.specs)

    def summed(self, table: SumsOfTable, owners: Owners) -> ZSet:
        """What the rows of a table add to the sums: a row for each key."""
        touched = table.finish(owners)
        self._part_rows, self._part_hashes = touched.rows[:0], touched.hashes[:0]
        return touched

    def nothing(self) -> ZSet:
        """The one key of an aggregate without keys, with no change."""
        rows = np.zeros((1, self.layout.width), dtype=np.int64)
        self._part_rows, self._part_hashes = rows[:0], np.zeros(0, dtype=np.uint64)
        return ZSet(self.layout, rows)

    def old(self, touched: ZSet) -> Words:
        """The weights of part 0 before the change."""
        return self._weights(touched, self.trace.table())

    def _weights(self, keys: ZSet, table: Words) -> Words:
        layout = self.layout
        out = np.empty((len(keys), layout.weights), dtype=np.int64)
        parts = self._row_parts
        probe.sums(table, keys.hashes, keys.rows, parts, parts, layout.width, layout.payload, out)
        return out

    def stage(self, touched: ZSet, *, given: bool = False) -> None:
        """Stage the change: the rows of the keys, their parts, and that a row was given for no rows."""
        if not self._parted:
            self.trace.stage(touched)
            return
        rows = [touched.rows, self._part_rows]
        hashes = [touched.hashes, self._part_hashes]
        if given:
            mark = np.zeros((1, self.layout.width), dtype=np.int64)
            mark[0, self._part_word] = _GIVEN
            mark[0, self.layout.payload] = 1
            rows.append(mark)
            hashes.append(ZSet(self.layout, mark).hashes)
        self.trace.stage(ZSet(self.layout, np.concatenate(rows), touched.owners, hashes=np.concatenate(hashes)))

    def given(self) -> bool:
        """Was a row given for no rows?"""
        mark = np.zeros((1, self.layout.width), dtype=np.int64)
        mark[0, self._part_word] = _GIVEN
        return bool(self._weights(ZSet(self.layout, mark), self.trace.table())[0, 0])

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, touched: ZSet, both: Words) -> dict[Request, Array]:
        """For each request its sums before and after the change, stacked; what is staged counts as the change.

        A sum of doubles is given by its bits, rounded; a product by whole numbers (the sum times 2**bias, how many were
        not finite).
        """
        found: dict[Request, Array] = {r: both[:, at] for r, at in self._words.items()}
        if not self._products:
            return found
        tables = [self.trace.table(), self.trace.table(staged=True)]
        if len(self._rounded):
            bits = np.concatenate([self._rounded_sums(touched, table) for table in tables])
            for k, index in enumerate(self._rounded):
                found |= {r: bits[:, k : k + 1] for r, i in self._products.items() if i == index}
        exact = [r for r in self._products if r.accumulator.what == PRODUCT]
        if exact:
            totals = np.concatenate([self._exact_sums(touched, exact, staged=s) for s in (False, True)])
            found |= {r: totals[:, 2 * k : 2 * k + 2] for k, r in enumerate(exact)}
        return found

    def _rounded_sums(self, touched: ZSet, table: Words) -> Words:
        layout = self.layout
        out = np.empty((len(touched), len(self._rounded)), dtype=np.int64)
        own = layout.key_parts
        floats.rounded(
            table,
            touched.hashes,
            touched.rows,
            own,
            own,
            layout.width,
            self._part_word,
            layout.payload,
            self._rounded,
            out,
        )
        return out

    def _exact_sums(self, touched: ZSet, wanted: Sequence[Request], *, staged: bool) -> Array:
        """A loop over the buckets of the keys touched: whole numbers of any size are Python's."""
        out = np.zeros((len(touched), 2 * len(wanted)), dtype=object)
        at = {self._products[r]: 2 * k for k, r in enumerate(wanted)}
        widths = {2 * k: self._limbs_of(r) for k, r in enumerate(wanted)}
        matches = self.trace.find(touched, staged=staged)
        rows = matches.rows.rows
        kept = np.flatnonzero(rows[:, self._part_word] > 0)
        payload = self.layout.payload
        for which, part, limbs in zip(
            matches.which[kept].tolist(),
            rows[kept, self._part_word].tolist(),
            rows[kept, payload:].tolist(),
            strict=True,
        ):
            column = at.get((part >> 16) - 1)
            if column is None:
                continue
            bucket = part & floats.SPECIAL
            if bucket == floats.SPECIAL:
                out[which, column + 1] += limbs[2]
                continue
            total = 0
            for limb in reversed(limbs[: widths[column]]):
                total = (total << 32) + limb
            out[which, column] += total << (32 * bucket)
        return out

    def _limbs_of(self, request: Request) -> int:
        return _limbs(self._feeds[request.feed].layout, request.accumulator)


def gated(accumulator: Accumulator, where: str | None) -> Accumulator:
    """The same accumulator over the rows for which a condition is true."""
    return accumulator if where is None else replace(accumulator, true=(*accumulator.true, where))


def _limbs(layout: Layout, accumulator: Accumulator) -> int:
    if accumulator.what != PRODUCT:
        return 3
    kinds = [_KINDS.get(layout.column(c).kind, (floats.WORD, 64)) for c in accumulator.columns]
    shifted = 31 if any(kind == floats.DOUBLE for kind, _ in kinds) else 0
    return -(-(sum(bits for _, bits in kinds) + shifted) // 32)


def _matrix(lines: Sequence[Sequence[int]], width: int) -> Words:
    return np.array(lines, dtype=np.int64).reshape(len(lines), width)


def _signed(mask: int) -> int:
    return mask - (1 << 64) if mask >> 63 else mask
