"""Chains: linear nodes that follow each other, done in one pass.

A filter, a select, a filter of what was selected: each is cheap, and between them rows would be copied, columns taken
out of words and results put back. A chain reads its members' links (`headwater.incremental.operators.link`) and does on
one batch what they do one after the other: a column is decoded when it is first read, conditions thin out the rows at
hand, and the rows of the last member are written once. Nothing is consolidated in between. Where the last reader is an
arrangement, they are written in its order of columns. A chain of comparisons with constants and moved columns is one
call (`headwater.kernels.sieve`).

Members stay what they are: they keep their names, their SQL and their counts of rows, and state is named as if they
ran alone. If a row cannot be computed, the members do run alone, so that the error names the member and the row it saw.

Invariant: what a chain gives is what its members give one after the other, up to the order in which rows are listed. An
expression whose result nobody reads is left out only if it cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import ConstraintError, ExpressionError
from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.location import located
from headwater.incremental.vectors import put_vector, vector_at
from headwater.incremental.zset import ZSet
from headwater.kernels.arrange import fill_order_words, take
from headwater.kernels.limits import within
from headwater.kernels.sieve import sieve
from headwater.sql.vectorised.vector import Vector, nulls

if TYPE_CHECKING:
    from headwater.incremental.operators.node import Node
    from headwater.incremental.packing import Rows
    from headwater.sql.vectorised import Program

__all__ = ["Chain"]

Reference = int | None
"""A column of the source by its number, what was made as -1, -2..., or a null."""

_NO_LIMITS = np.zeros((0, 6), dtype=np.int64)
_NO_MAKINGS = np.zeros((0, 7), dtype=np.int64)
_LEAST = np.iinfo(np.int64).min


@dataclass(slots=True)
class _Part:
    """Something to be done to a batch for the member of a number: limits, a condition,
    or an expression that makes a column.
    """

    member: int
    limits: npt.NDArray[np.int64] | None = None
    program: Program | None = None
    reads: tuple[Reference, ...] = ()
    dtypes: tuple[pa.DataType, ...] = ()
    makes: int = 0


class Chain:
    """Linear nodes in a row, and possibly the arrangement that reads the last of them.

    ``rows`` are, after a step, how many rows came to each member and went from the last.
    """

    __slots__ = (
        "_arrange",
        "_first_limits",
        "_last_limits",
        "_made",
        "_moving",
        "_negated",
        "_nulls",
        "_one_pass",
        "_parts",
        "_same",
        "_same_rows",
        "_source",
        "_target",
        "_words_stay",
        "members",
        "rows",
    )

    def __init__(self, members: Sequence[Node]) -> None:
        self.members = tuple(members)
        last = members[-1]
        self._arrange = last if isinstance(last, Arrange) else None
        self._source = members[0].inputs[0].layout
        self._parts: list[_Part] = []
        self._negated = False
        references: list[Reference] = list(range(len(self._source.columns)))
        for number, node in enumerate(self._lifts):
            references = self._linked(number, node, references)
        target = self._lifts[-1].layout
        if self._arrange is not None:
            names = target.schema
            target = self._arrange.layout
            references = [references[names.get_field_index(n)] for n in target.names]
        self._target = target
        self._finish(references)
        self.rows = [0] * (len(members) + 1)

    @property
    def _lifts(self) -> tuple[Node, ...]:
        return self.members if self._arrange is None else self.members[:-1]

    # -- plans -----------------------------------------------------------------------------------------------------

    def _linked(self, number: int, node: Node, references: list[Reference]) -> list[Reference]:
        link = node.link()
        assert link is not None, f"{node} is not linear"
        before = node.inputs[0].layout
        dtypes = tuple(c.dtype for c in before.columns)
        self._negated ^= link.negated
        if link.condition is not None:
            limits = _of_source(link.limits, before, references, self._source)
            self._parts.append(_Part(number, limits, link.condition, tuple(references), dtypes))
        if link.columns is None:
            return references
        found: list[Reference] = []
        for how in link.columns:
            if how is None or isinstance(how, int):
                found.append(None if how is None else references[how])
                continue
            made = -1 - sum(1 for p in self._parts if p.makes)
            self._parts.append(_Part(number, None, how, tuple(references), dtypes, made))
            found.append(made)
        return found

    def _finish(self, references: Sequence[Reference]) -> None:
        self._parts = _needed(self._parts, references)
        makes = [p.makes for p in self._parts if p.makes]
        self._made = [(self._target.columns[i], r) for i, r in enumerate(references) if r is not None and r < 0]
        self._nulls: dict[int, int] = {}
        for c, r in zip(self._target.columns, references, strict=True):
            if r is None:
                assert c.nullable, "a column that is missing has to be nullable"
                self._nulls[c.null_word] = self._nulls.get(c.null_word, 0) | 1 << c.null_bit
        pairs = [(r, i) for i, r in enumerate(references) if r is not None and r >= 0]
        self._moving = Moving(self._source, self._target, pairs)
        # Rows that differ stay different where no column is lost; and what only chooses among rows keeps their order.
        self._same = {a for a, _ in pairs} == set(range(len(self._source.columns)))
        lifts_only = self._arrange is None and self._target is self._source
        self._same_rows = lifts_only and not makes and not self._nulls and not self._negated
        limits = [p.limits for p in self._parts]
        self._one_pass: npt.NDArray[np.int64] | None = None
        if all(x is not None for x in limits):
            self._one_pass = np.concatenate([x for x in limits if x is not None]) if limits else _NO_LIMITS
        self._last_limits = [-1] * len(self.members)
        line = -1
        self._first_limits = self._parts[0].member if self._parts else len(self.members)
        # Where one member chooses and words stay where they were, choosing is all there is to do.
        self._words_stay = (
            len(self._parts) == 1
            and self._target.width == self._source.width
            and not self._target.order_words
            and not self._nulls
            and not self._negated
            and all(self._source.columns[a].word == self._target.columns[b].word for a, b in pairs)
            and len(pairs) == len(self._source.columns) == len(self._target.columns)
        )
        for part in self._parts:
            line += 0 if part.limits is None else len(part.limits)
            self._last_limits[part.member] = line

    # -- a step ----------------------------------------------------------------------------------------------------

    def passed(self, delta: ZSet) -> ZSet:
        """What comes out of the chain, in the arrangement's layout if it ends with one, but not yet in its trace."""
        try:
            return self._passed(delta)
        except ExpressionError:
            self._alone(delta)
            raise

    def step(self, delta: ZSet) -> ZSet:
        """What the last member gives, for what comes to the first."""
        found = self.passed(delta)
        if self._arrange is None:
            return found
        return self._arrange.staged(found) if len(found.rows) else self._arrange.empty

    def _passed(self, delta: ZSet) -> ZSet:
        n = len(delta.rows)
        counts = self.rows
        one_pass = self._one_pass
        if one_pass is not None and self._words_stay:
            out = np.empty((n, self._target.width), dtype=np.int64)
            m = within(delta.rows, one_pass, out)
            first = self._first_limits
            for number in range(len(counts)):
                counts[number] = n if number <= first else m
            out = out[:m] if m < n else delta.rows
            owners = delta.owners
        elif one_pass is not None:
            out = np.empty((n, self._target.width), dtype=np.int64)
            passed = np.empty(len(one_pass), dtype=np.int64)
            plain = not self._nulls
            makings = self._target.makings if plain else _NO_MAKINGS
            moving = self._moving
            m = sieve(delta.rows, one_pass, moving.moves, moving.bits, makings, passed, out)
            counts[0] = n
            self._count(passed)
            owners = delta.owners
            if m < n:
                out = out[:m]
            if not plain:
                self._completed(out, {}, [])
        else:
            rows, made, owners = self._evaluated(delta)
            kept: list[object] = list(owners)
            out = np.empty((len(rows), self._target.width), dtype=np.int64)
            sieve(rows, _NO_LIMITS, self._moving.moves, self._moving.bits, _NO_MAKINGS, _NO_LIMITS[:, 0], out)
            self._completed(out, made, kept)
            owners = tuple(kept)
        if self._negated:
            weights = out[:, -1]
            if (weights == _LEAST).any():
                raise ConstraintError.weight_overflow()
            out[:, -1] = -weights
        if self._same_rows:
            return ZSet(self._target, out, owners, consolidated=delta.consolidated, net=delta.net)
        return ZSet(self._target, out, owners, net=self._same and delta.net)

    def _count(self, passed: npt.NDArray[np.int64]) -> None:
        """How many rows came to each member, of how many got through each limit."""
        counts = self.rows
        left = passed.tolist()
        for number, line in enumerate(self._last_limits):
            counts[number + 1] = counts[number] if line < 0 else left[line]

    def _evaluated(self, delta: ZSet) -> tuple[Rows, dict[int, Vector], tuple[object, ...]]:
        """The rows of the source that are kept, and what was made of them."""
        rows = delta.rows
        vectors: dict[int, Vector] = {}
        counts = self.rows
        counts[0] = len(rows)
        known = 1
        for part in self._parts:
            while known <= part.member:
                counts[known] = len(rows)
                known += 1
            if part.limits is not None and not any(r < 0 for r in vectors):
                vectors.clear()
                out = np.empty((len(rows), rows.shape[1]), dtype=np.int64)
                rows = out[: within(rows, part.limits, out)]
                continue
            assert part.program is not None
            found = self._reader(part, rows, vectors)
            if part.makes:
                vectors[part.makes] = part.program.run(found, len(rows))
                continue
            kept = part.program.filter(found, len(rows))
            if kept is not None:
                out = np.empty((len(kept), rows.shape[1]), dtype=np.int64)
                take(rows, kept, out)
                rows = out
                vectors = {r: _taken(v, kept) for r, v in vectors.items() if r < 0 or isinstance(v.values, pa.Array)}
        for number in range(known, len(counts)):
            counts[number] = len(rows)
        return rows, vectors, delta.owners

    def _reader(self, part: _Part, rows: Rows, vectors: dict[int, Vector]) -> Callable[[int], Vector]:
        columns = self._source.columns

        def read(index: int) -> Vector:
            reference = part.reads[index]
            if reference is None:
                return nulls(part.dtypes[index], len(rows))
            vector = vectors.get(reference)
            if vector is None:
                vector = vectors[reference] = vector_at(rows, columns[reference])
            return vector

        return read

    def _completed(self, out: Rows, made: dict[int, Vector], owners: list[object]) -> None:
        """Fill what was not moved: nulls, what was made, and the order words."""
        for word, bits in self._nulls.items():
            out[:, word] |= np.int64(bits - (1 << 64) if bits >> 63 else bits)
        if len(out):
            for placed, reference in self._made:
                put_vector(out, placed, made[reference], owners)
        fill_order_words(out, self._target.makings)

    def _alone(self, delta: ZSet) -> None:
        """Run the members one after the other: raises the error of the one that cannot."""
        for node in self._lifts:
            if not len(delta):
                return
            try:
                delta = node.step([delta])
            except ExpressionError as error:
                raise located(error, node, [delta]) from None


def _of_source(
    limits: npt.NDArray[np.int64] | None, before: Layout, references: Sequence[Reference], source: Layout
) -> npt.NDArray[np.int64] | None:
    """Limits of a member's words as limits of the source's; None where they are of something made."""
    if limits is None:
        return None
    found = limits.copy()
    at = {c.word: r for c, r in zip(before.columns, references, strict=True)}
    for line in found:
        reference = at.get(int(line[0]))
        if reference is None or reference < 0:
            return None
        placed = source.columns[reference]
        line[0], line[3], line[4] = placed.word, placed.null_word, placed.null_bit
    return found


def _needed(parts: Sequence[_Part], references: Sequence[Reference]) -> list[_Part]:
    """The parts without those that make what nobody reads, and cannot fail."""
    wanted = {r for r in references if r is not None and r < 0}
    kept = []
    for part in reversed(parts):
        assert part.program is not None
        if part.makes and part.makes not in wanted and not part.program.fallible:
            continue
        wanted |= {r for i in part.program.columns if (r := part.reads[i]) is not None}
        kept.append(part)
    return kept[::-1]


def _taken(vector: Vector, kept: npt.NDArray[np.int64]) -> Vector:
    values = vector.values
    taken = values.take(pa.array(kept)) if isinstance(values, pa.Array) else values[kept]
    return Vector(vector.dtype, taken, None if vector.valid is None else vector.valid[kept])
