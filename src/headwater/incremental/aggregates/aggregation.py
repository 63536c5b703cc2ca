"""What an aggregate is, to the node that keeps it.

A *linear* aggregate says which accumulators it needs (`Accumulator`), and makes its value of their sums. An *extreme*
is the first or last row of the key in an order. A *quantile* is the row at a place in an order, a *mode* the value that
is there most often. Everything else is *general*: a function of all rows of a key.

Every aggregate may have a ``where``, a column of booleans that says which rows count, and be ``distinct``: of rows with
equal arguments one counts.

`finish` is given the sums for many keys at once, as one array an accumulator, and gives the words of its column and
which are null.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.incremental.layout import Layout, Order, Placed
from headwater.incremental.packing import Owners, pack_column

if TYPE_CHECKING:
    from headwater.incremental.trace import Trace
    from headwater.incremental.zset import ZSet

__all__ = [
    "Accumulator",
    "Aggregation",
    "Extreme",
    "Linear",
    "Stage",
    "Values",
    "failed",
    "from_arrow",
    "ordered",
    "place",
    "selected",
]

Words = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Accumulator:
    """Something added up: ``what`` of `headwater.kernels.accumulate`, of columns.

    Only rows count in which the columns ``present`` are not null, and the conditions ``true`` are.
    """

    what: int
    columns: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    true: tuple[str, ...] = ()
    words: int = 1


@dataclass(slots=True)
class Values:
    """The words of a column, [rows, words of the column], which rows are null, and what keeps long strings alive."""

    words: Words
    nulls: Mask | None = None
    owners: Owners = ()


@dataclass(frozen=True)
class Aggregation(ABC):
    """One column of the output: ``name`` is what it is called there."""

    name: str
    _: KW_ONLY
    where: str | None = None
    distinct: bool = False

    @property
    @abstractmethod
    def field(self) -> pa.Field:
        """The column of the output."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns that it reads, but for ``where``."""
        return ()

    @property
    def text(self) -> str:
        """What it is, for messages."""
        inner = ", ".join(self.arguments) or "*"
        return f"{self.called}({'DISTINCT ' * self.distinct}{inner})"

    @property
    def called(self) -> str:
        """The function's name."""
        return type(self).__name__.lower()

    @property
    def detail(self) -> str:
        """All that it is, for people and for telling circuits apart."""
        where = f" FILTER (WHERE {self.where})" if self.where else ""
        return f"{self.text}{where}" + (f" AS {self.name}" if self.name != self.text else "")


@dataclass(frozen=True)
class Linear(Aggregation):
    """An aggregate of sums."""

    @property
    @abstractmethod
    def accumulators(self) -> tuple[Accumulator, ...]:
        """What it needs to have added up."""

    @property
    def recipe(self) -> int | None:
        """How `headwater.kernels.finish` makes its values of its first and last accumulator;
        None if `finish` has to be called.
        """
        return None

    @abstractmethod
    def finish(self, sums: Sequence[Array]) -> Values:
        """Its values, given for each accumulator an array [keys, words]."""


@dataclass(frozen=True)
class Extreme(Aggregation):
    """The value of a column in the first row of the key in an order, or in the last; min and max are the extremes of
    the column itself.

    Rows in which a column of ``needed`` is null do not count. Rows that are equal in the order are told apart by the
    column itself, so the first of them is the one with the least value (null being the least), and the last the one
    with the greatest.

    Parameters
    ----------
    order : tuple of Order
        empty for the column's own order, in which nulls do not count
    needed : tuple of str
        None for the column itself
    """

    column: str
    dtype: pa.DataType
    last: bool
    order: tuple[Order, ...] = ()
    needed: tuple[str, ...] | None = None

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.dtype)

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([self.column, *(o.column for o in self.order)]))

    @property
    def text(self) -> str:
        if not self.order:
            return f"{'max' if self.last else 'min'}({self.column})"
        needed = f", {' and '.join(self.required)} NOT NULL" if self.required else ""
        return f"{'last' if self.last else 'first'}({self.column} ORDER BY {ordered(self.order)}{needed})"

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must not be null for a row to count."""
        return (self.column,) if self.needed is None else self.needed

    @property
    def ordering(self) -> tuple[Order, ...]:
        """The order, ended by the column itself."""
        if any(o.column == self.column for o in self.order):
            return self.order
        return (*self.order, Order(self.column))

    @property
    def shared(self) -> tuple[object, ...]:
        """Extremes that agree in this are kept together."""
        return self.arguments if self.order else (self.column,), self.ordering, self.required, self.where

    @property
    def described(self) -> str:
        """Of what, in which order, for names of state."""
        parts = [self.column, self.order and f"by {ordered(self.order)}", self.where and f"where {self.where}"]
        if self.order:
            parts.append(f"with {', '.join(self.required)}" if self.required else "with nulls")
        return " ".join(p for p in parts if p)


class Stage(Protocol):
    """State beside the sums: of extremes, quantiles, modes, or whole groups.

    ``accumulators`` is how many words of each key's sums it keeps its last answers in.
    """

    accumulators: int

    def step(self, delta: ZSet, touched: ZSet, old: Words, out: Words) -> None:
        """Write the values before the step to the first half of ``out``, and those after it to the second.

        ``delta`` are the rows that changed, ``touched`` the keys they touch, with what is added to their accumulators,
        and ``old`` the accumulators before.
        """

    def owners(self) -> Sequence[object]:
        """What has to be kept while the answers flow."""

    def commit(self) -> None:
        """Make staged state permanent."""

    def rollback(self) -> None:
        """Forget staged state."""

    def traces(self) -> Mapping[str, Trace]:
        """The state, by name."""


def ordered(order: Sequence[Order]) -> str:
    """An order as SQL writes it.

    >>> ordered([Order("ts", descending=True)])
    'ts DESC NULLS LAST'
    """
    return ", ".join(f"{o.column}{' DESC' * o.descending} NULLS {'FIRST' if o.nulls_first else 'LAST'}" for o in order)


def failed(aggregation: Aggregation, why: str) -> ExpressionError:
    """The error of a value that cannot be given."""
    return ExpressionError.failed(aggregation.text, why)


def from_arrow(array: pa.Array, dtype: pa.DataType) -> Values:
    """The words of an Arrow array of a type.

    >>> from_arrow(pa.array([1, None]), pa.int64()).nulls.tolist()
    [False, True]
    """
    layout = Layout(pa.schema([pa.field("value", dtype)]))
    placed = layout.columns[0]
    rows = np.zeros((len(array), layout.width), dtype=np.int64)
    owners: list[object] = []
    pack_column(rows, placed, array, owners)
    nulls = rows[:, placed.null_word] & 1 != 0
    return Values(rows[:, placed.word : placed.word + placed.words], nulls, tuple(owners))


def place(out: Words, placed: Placed, values: Values) -> None:
    """Write values to their column of rows in which it is zero."""
    at = slice(placed.word, placed.word + placed.words)
    out[:, at] = values.words
    if values.nulls is not None:
        out[:, placed.null_word] |= values.nulls.astype(np.int64) << placed.null_bit
        out[values.nulls, at] = 0


def selected(delta: ZSet, where: str | None, needed: Sequence[str]) -> ZSet:
    """The rows for which a condition is true and in which the needed columns are not null."""
    layout = delta.layout
    kept: Mask | None = None
    if where is not None:
        kept = delta.rows[:, layout.column(where).word] == 1
    for placed in map(layout.column, needed):
        if placed.nullable:
            there = (delta.rows[:, placed.null_word] >> placed.null_bit) & 1 == 0
            kept = there if kept is None else kept & there
    return delta if kept is None or kept.all() else delta.filtered(np.flatnonzero(kept))
