"""As-of join: each row of the left with the row of the right that was last before it, comes first after it, or is
nearest in time.

For a given right side the join is linear in the left: changed rows on the left look their match up. A changed row on
the right touches the rows on the left up to the next row on the right, old or new; those are read as a slice of the
left's trace, and emitted where their match differs. So a change costs its own rows and the rows on the left that it
touches, whatever the size of the group.

Of rows on the right with the same time, ``backward`` takes the last in the right's order (the order columns after the
time, then the whole row) and ``forward`` the first; ``nearest`` takes the one before if both are as near. A row on the
right matches once however often it is there. Nulls in the key or in the time match nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.frames import length_words, units_of
from headwater.incremental.operators.join import without_null_keys
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.operators.over import nulls_of
from headwater.incremental.operators.places import Places, time_column
from headwater.incremental.run import addresses
from headwater.incremental.zset import Positions, ZSet, concatenate
from headwater.kernels.asof import nearest
from headwater.kernels.groups import gather
from headwater.kernels.window_join import between

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange
    from headwater.incremental.packing import Rows
    from headwater.incremental.sweep import Gone

__all__ = ["AsOf"]

Mask = npt.NDArray[np.bool_]
Direction = Literal["backward", "forward", "nearest"]

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(slots=True)
class _Matches:
    """For each row of the left whether it has a match, and the row of the right."""

    there: Mask
    rows: Rows


class AsOf(Node):
    """The as-of join of two streams, arranged by the same key and ordered by their times.

    Parameters
    ----------
    left, right : Arrange
        ordered by a time that rises; the right may have more order columns, which decide among rows of the same time
    left_columns, right_columns : sequence of (column, name in the output)
    direction : {"backward", "forward", "nearest"}
    tolerance : int, Decimal or timedelta, optional
        how far a match may be
    strict : bool
        whether a match at the very time of the row does not count
    how : {"inner", "left"}
        whether rows of the left without a match stay, with nulls
    """

    kind: ClassVar[Kind] = "cogroup"

    def __init__(
        self,
        left: Arrange,
        right: Arrange,
        left_columns: Sequence[tuple[str, str]],
        right_columns: Sequence[tuple[str, str]],
        *,
        direction: Direction = "backward",
        tolerance: int | Decimal | timedelta | None = None,
        strict: bool = False,
        how: Literal["inner", "left"] = "left",
        sql: str = "",
    ) -> None:
        self._left, self._right = left, right
        self._left_time, self._right_time = time_column(left.layout), time_column(right.layout)
        if self._left_time.dtype != self._right_time.dtype or left.layout.keys != right.layout.keys:
            raise InputError.bad_argument(
                "right", right.detail, "a key and a time of the same types as those of the left"
            )
        if direction not in get_args(Direction):
            raise InputError.bad_argument("direction", direction, "backward, forward or nearest")
        if how not in ("inner", "left"):
            raise InputError.bad_argument("how", how, "inner or left")
        self.direction: Direction = direction
        self.tolerance = None if tolerance is None else units_of(self._left_time.dtype, tolerance)
        if self.tolerance is not None and self.tolerance < 0:
            raise InputError.bad_argument("tolerance", tolerance, "zero or more")
        if self._left_time.kind != "word" and (direction == "nearest" or tolerance is not None):
            hint = "distances are of timestamps, dates, whole numbers, and decimals of at most 18 digits"
            raise UnsupportedError.column_type(self._left_time.name, str(self._left_time.dtype), hint)
        self.strict = strict
        self._outer = how == "left"
        fields = [left.layout.schema.field(a).with_name(b) for a, b in left_columns]
        for a, b in right_columns:
            field = right.layout.schema.field(a).with_name(b)
            fields.append(field.with_nullable(True) if self._outer else field)
        layout = Layout(pa.schema(fields))
        bound = "" if self.tolerance is None else f" within {self.tolerance}"
        detail = f"{direction}{bound}{' strictly' if strict else ''}, {how}"
        super().__init__([left, right], layout, label="as-of join", detail=detail, sql=sql)
        if self.tolerance is not None:
            length = length_words(self._left_time.dtype, self.tolerance)
            self.shown = f"{direction} within {length}{' strictly' if strict else ''}, {how}"
        of_left = [(left.layout.schema.get_field_index(a), i) for i, (a, _) in enumerate(left_columns)]
        of_right = [
            (right.layout.schema.get_field_index(a), len(of_left) + i) for i, (a, _) in enumerate(right_columns)
        ]
        self._from_left = Moving(left.layout, layout, of_left)
        self._from_right = Moving(right.layout, layout, of_right, weight=None)
        self._right_columns = layout.columns[len(of_left) :]
        self._in_right = Places(left.layout, right.layout)
        self._in_left = Places(right.layout, left.layout)
        self._of_right = Places(right.layout, right.layout)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        left, right = deltas
        parts = []
        if len(left):
            parts.append(self._rows(left, self._matches(left, staged=True)))
        touched = self._touched(right) if len(right) else None
        if touched is not None and len(touched):
            new, old = (self._matches(touched, staged=s) for s in (True, False))
            same = (new.there == old.there) & (~new.there | (new.rows[:, :-1] == old.rows[:, :-1]).all(axis=1))
            differ = np.flatnonzero(~same)
            some = touched.filtered(differ)
            parts += [
                self._rows(some, _Matches(new.there[differ], new.rows[differ])),
                self._rows(-some, _Matches(old.there[differ], old.rows[differ])),
            ]
        return concatenate(parts, self.layout).consolidate()

    # -- looking up --------------------------------------------------------------------------------------------------

    def _askable(self, left: ZSet) -> Mask:
        """Which rows of the left have a key and a time."""
        asked = ~nulls_of(left.rows, self._left_time)
        for column in left.layout.columns[: left.layout.keys]:
            if column.nullable:
                asked &= ~nulls_of(left.rows, column)
        return asked

    def _matches(self, left: ZSet, *, staged: bool) -> _Matches:
        asked = self._askable(left)
        probes = self._in_right.of(left.rows)
        times = left.rows[:, self._left_time.word]
        found = []
        for backwards in (True, False):
            if self.direction != ("forward" if backwards else "backward"):
                found.append(self._nearest(probes, asked, backwards=backwards, strict=self.strict, staged=staged))
                self._keep_near(times, found[-1])
        if len(found) == 1:
            return found[0]
        before, after = found
        ahead, behind = self._distance(times, after), self._distance(times, before)
        choose = after.there & (~before.there | (ahead < behind))
        return _Matches(before.there | after.there, np.where(choose[:, None], after.rows, before.rows))

    def _nearest(
        self,
        probes: Rows,
        asked: Mask,
        *,
        backwards: bool,
        strict: bool,
        staged: bool = False,
        table: Rows | None = None,
    ) -> _Matches:
        """The rows of the right, or of a table of runs of it, nearest to the times of probes in its layout."""
        layout = self._right.layout
        n = len(probes)
        found = _Matches(np.zeros(n, dtype=np.bool_), np.zeros((n, layout.width), dtype=np.int64))
        nearest(
            self._right.trace.table(staged=staged) if table is None else table,
            layout.width,
            self._in_right.hashes(probes),
            probes,
            asked,
            self._in_right.parts,
            layout.key_parts,
            layout.sort_parts,
            layout.slots,
            backwards,
            strict,
            found.there,
            found.rows,
        )
        if self._right_time.nullable:
            found.there &= ~nulls_of(found.rows, self._right_time)
        return found

    def _distance(self, times: Rows, matches: _Matches) -> npt.NDArray[np.uint64]:
        """How far matches are, as a number without a sign, which cannot overflow."""
        there = matches.rows[:, self._right_time.word]
        return np.where(times >= there, times - there, there - times).view(np.uint64)

    def _keep_near(self, times: Rows, matches: _Matches) -> None:
        if self.tolerance is not None:
            matches.there &= self._distance(times, matches) <= np.uint64(min(self.tolerance, 2 * _MOST + 1))

    def matched(self, least: int) -> Gone:
        """Which rows of the left no row of the right from ``least`` on can touch, as the right is now, if the next one
        counts too.

        There is a match after them already, or one before that is as near as any to come; or they have no key to be
        matched by.
        """
        runs = self._right.trace.snapshot()
        table = addresses(runs, room=0)

        def found(left: ZSet, _: Positions) -> Mask:
            assert len(runs) == len(table), "the runs are kept as long as the table is read"
            times = left.rows[:, self._left_time.word]
            past = (times < least) & ~nulls_of(left.rows, self._left_time)
            asked = past & self._askable(left)
            probes = self._in_right.of(left.rows)
            after = self._nearest(probes, asked, backwards=False, strict=self.strict, table=table)
            out = (past & ~asked) | (after.there & (after.rows[:, self._right_time.word] < least))
            if self.direction == "nearest":
                before = self._nearest(probes, asked, backwards=True, strict=self.strict, table=table)
                ahead = (np.int64(least) - times).view(np.uint64)
                out |= before.there & (ahead >= self._distance(times, before))
            return out

        return found

    # -- what the right touches --------------------------------------------------------------------------------------

    def _touched(self, delta: ZSet) -> ZSet:
        """The old rows of the left whose match a change of the right may change."""
        changed = without_null_keys(delta)
        changed = changed.filtered(np.flatnonzero(~nulls_of(changed.rows, self._right_time)))
        layout = self._left.layout
        if not len(changed):
            return ZSet.empty(layout)
        lo, from_first = self._edge(changed, backwards=True)
        hi, to_last = self._edge(changed, backwards=False)
        table = self._left.trace.table()
        picks = between(
            table,
            layout.width,
            self._in_left.hashes(lo),
            lo,
            hi,
            from_first,
            to_last,
            layout.key_parts,
            self._in_left.parts,
            layout.sort_parts,
        )
        rows = np.empty((len(picks), layout.width), dtype=np.int64)
        gather(table, layout.width, picks, layout.slots, rows)
        rows[:, -1] = picks[:, 2]
        return ZSet(layout, rows, self._left.trace.owners())

    def _edge(self, changed: ZSet, *, backwards: bool) -> tuple[Rows, Mask]:
        """How far changes reach on one side, as rows of the left's layout,
        and where that is to the end of the group.
        """
        own = self._of_right.of(changed.rows)
        n = len(own)
        if self.direction == ("backward" if backwards else "forward"):
            return self._in_left.of(changed.rows), np.zeros(n, dtype=np.bool_)
        asked = np.ones(n, dtype=np.bool_)
        edge, endless = own.copy(), asked.copy()
        parts = self._of_right.time_parts
        for staged in (False, True):
            found = self._nearest(own, asked, backwards=backwards, strict=True, staged=staged)
            nearer = found.there & (endless | self._of_right.inside(found.rows, edge, parts, backwards=backwards))
            edge[nearer] = found.rows[nearer]
            endless &= ~found.there
        out = self._in_left.of(edge)
        if self.tolerance is not None:
            self._cut(changed, out, endless, backwards=backwards)
        return out, endless

    def _cut(self, changed: ZSet, edge: Rows, endless: Mask, *, backwards: bool) -> None:
        """Reach no further than the tolerance."""
        times = changed.rows[:, self._right_time.word]
        tolerance = min(self.tolerance or 0, _MOST)
        if backwards:
            limit = np.where(times < _LEAST + tolerance, _LEAST, times - tolerance)
        else:
            limit = np.where(times > _MOST - tolerance, _MOST, times + tolerance)
        word = self._left_time.word
        cut = endless | ((edge[:, word] < limit) if backwards else (edge[:, word] > limit))
        self._in_left.set_time(edge, np.where(cut, limit, edge[:, word]))
        endless[:] = False

    # -- rows of the output ------------------------------------------------------------------------------------------

    def _rows(self, left: ZSet, matches: _Matches) -> ZSet:
        there = matches.there
        if not self._outer:
            which = np.flatnonzero(there)
            left = left.filtered(which)
            matches = _Matches(there[which], matches.rows[which])
            there = matches.there
        out = self._from_left.moved(left.rows)
        rows = matches.rows
        rows[~there] = 0
        self._from_right.add_to(rows, out)
        if not there.all():
            lacking = (~there).astype(np.int64)
            for column in self._right_columns:
                out[:, column.null_word] |= lacking << column.null_bit
        return ZSet(self.layout, out, (*left.owners, *self._right.trace.owners(staged=True)))
