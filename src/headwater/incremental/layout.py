"""Layouts: which words of a row belong to which column.

A row is a few 64-bit words (`headwater.kernels.words`), whatever its columns are, so a kernel is compiled once and not
for each schema. A `Layout` says where the columns of a schema stand::

    null words | columns | order words | weights

- one null word for each 64 columns, in which bit ``i`` means that column ``i`` is null;
- a column is one word, two for decimals of more than 18 digits, and a slot of two for everything of variable length;
- **order words** are copies made for sorting, where a column's own words do not sort as asked: descending, nullable, or
  floats (whose zeros are equal and whose NaN comes last, as in Spark). They are derived from the row, so they never
  tell rows apart;
- one weight, or several for the accumulators of a linear aggregate.

The first ``keys`` columns are the key: rows are hashed by them, and a run is sorted by (hash, key, order, rest).
Invariants: equal schemas, keys and orders give equal layouts; the words of a null are zero; the key's null bits are the
lowest of word 0, so the same key has the same words and bits in every layout.

>>> layout = Layout(pa.schema([("id", pa.int64()), ("name", pa.string())]), keys=1)
>>> [c.word for c in layout.columns], layout.payload, layout.width
([1, 2], 4, 5)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.change import WEIGHT
from headwater.base.errors import UnsupportedError
from headwater.incremental import nested
from headwater.kernels.arrow import CODES

__all__ = ["MOST_KEYS", "Kind", "Layout", "Order", "Placed", "kind_of"]

Kind = Literal["word", "double", "float", "bool", "pair", "slot", "nested"]
Parts = npt.NDArray[np.int64]

MOST_KEYS = 60
"""How many columns a key can have: their nulls stand in one word."""
_WHOLE = -1
_WORD, _SLOT, _SLOT_DESCENDING = 0, 1, 2


def kind_of(dtype: pa.DataType, name: str = "value") -> Kind:
    """How values of a type are kept in words.

    >>> kind_of(pa.date32()), kind_of(pa.decimal128(38, 2)), kind_of(pa.string()), kind_of(pa.list_(pa.int8()))
    ('word', 'pair', 'slot', 'nested')
    """
    if pa.types.is_boolean(dtype):
        return "bool"
    if pa.types.is_float64(dtype):
        return "double"
    if pa.types.is_float32(dtype):
        return "float"
    if pa.types.is_decimal128(dtype):
        return "word" if dtype.precision <= 18 else "pair"
    if pa.types.is_integer(dtype) or pa.types.is_date32(dtype) or pa.types.is_timestamp(dtype):
        return "word"
    if pa.types.is_duration(dtype) or pa.types.is_time(dtype):
        return "word"
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return "slot"
    if pa.types.is_nested(dtype) or pa.types.is_interval(dtype) or pa.types.is_null(dtype):
        nested.check(dtype, name)
        return "nested"
    hint = "cast it to a type of Spark's first: a number, date, timestamp, string, binary, array, map or struct"
    raise UnsupportedError.column_type(name, str(dtype), hint)


@dataclass(frozen=True, slots=True)
class Order:
    """One column of an order.

    >>> Order("ts", descending=True)
    Order(column='ts', descending=True, nulls_first=False)
    """

    column: str
    descending: bool = False
    nulls_first: bool | None = None

    def __post_init__(self) -> None:
        if self.nulls_first is None:  # as in Spark: null is the least value
            object.__setattr__(self, "nulls_first", not self.descending)


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a column stands: its first word, and its null bit."""

    name: str
    dtype: pa.DataType
    nullable: bool
    kind: Kind
    word: int
    null_word: int
    null_bit: int

    @property
    def code(self) -> tuple[int, int, int, int, int]:
        """How `headwater.kernels.arrow` packs and unpacks it."""
        what: str = self.kind
        if self.is_slot:
            what = "slot"
        elif what == "word" and pa.types.is_decimal(self.dtype):
            what = "decimal"
        elif what == "word":
            unsigned = pa.types.is_unsigned_integer(self.dtype) and self.dtype.bit_width < 64
            what = f"{'u' if unsigned else ''}int{self.dtype.bit_width}"
        return CODES[what], self.word, self.null_word, self.null_bit, int(self.nullable)

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """The same as a matrix of one line."""
        return np.array([self.code], dtype=np.int64)

    @property
    def words(self) -> int:
        """How many words it takes."""
        return 2 if self.kind in {"pair", "slot", "nested"} else 1

    @property
    def is_slot(self) -> bool:
        """Is it of variable length?"""
        return self.kind in {"slot", "nested"}

    @property
    def parts(self) -> list[tuple[int, int, int]]:
        """What has to be equal for two values to be, and sorts in some order."""
        if self.is_slot:
            return [(self.word, _SLOT, _WHOLE)]
        return [(self.word + k, _WORD, _WHOLE) for k in range(self.words)]


@dataclass(frozen=True, slots=True)
class OrderWord:
    """A derived word: which column it is made of, and how (see `headwater.kernels.arrange`)."""

    column: int
    how: Literal["rank", "value", "low"]
    descending: bool
    nulls_first: bool
    word: int


class Layout:
    """Where the columns of a schema stand in a row of words.

    Parameters
    ----------
    schema : pa.Schema
        with the columns of the key first
    keys : int
        how many columns are the key
    order : sequence of Order
        how rows of one key are sorted
    weights : int
        how many weights a row has
    """

    __slots__ = ("__dict__", "columns", "keys", "order", "order_words", "payload", "schema", "weights", "width")

    def __init__(self, schema: pa.Schema, *, keys: int = 0, order: Sequence[Order] = (), weights: int = 1) -> None:
        if keys > MOST_KEYS:
            why = f"{keys} columns are more than the {MOST_KEYS} a key can have"
            raise UnsupportedError.operation("a key", why, "put them into a struct")
        self.schema = schema
        self.keys = keys
        self.order = tuple(order)
        self.weights = weights
        word = max(1, -(-len(schema) // 64))
        columns = []
        for i, field in enumerate(schema):
            placed = Placed(
                field.name, field.type, field.nullable, kind_of(field.type, field.name), word, i // 64, i % 64
            )
            columns.append(placed)
            word += placed.words
        self.columns: tuple[Placed, ...] = tuple(columns)
        self.order_words: list[OrderWord] = []
        for one in self.order:
            word = self._place_order(one, word)
        self.payload = word
        self.width = word + weights
        self.taken: pa.Schema | None = None

    def _place_order(self, one: Order, word: int) -> int:
        at = self.schema.get_field_index(one.column)
        assert at >= 0, f"{one.column} is no column, or two"
        column = self.columns[at]
        first = bool(one.nulls_first)
        if column.nullable:
            self.order_words.append(OrderWord(at, "rank", one.descending, first, word))
            word += 1
        if column.is_slot:  # its bytes are compared where they are
            return word
        if one.descending or column.kind in {"double", "float"}:
            for how in ("value", "low")[: column.words]:
                self.order_words.append(OrderWord(at, how, one.descending, first, word))  # type: ignore[arg-type]
                word += 1
        return word

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @cached_property
    def key_parts(self) -> Parts:
        """The parts of the key, for hashing and comparing."""
        parts = [part for column in self.columns[: self.keys] for part in column.parts]
        mask = (1 << self.keys) - 1
        return _matrix([*parts, (0, _WORD, mask)] if mask else parts)

    @cached_property
    def order_parts(self) -> Parts:
        """The parts of the order within a key."""
        return self.first_order_parts(len(self.order))

    def first_order_parts(self, columns: int) -> Parts:
        """The parts of the first columns of the order."""
        parts: list[tuple[int, int, int]] = []
        for one in self.order[:columns]:
            at = self.schema.get_field_index(one.column)
            column = self.columns[at]
            own = [w for w in self.order_words if w.column == at]
            parts += [(w.word, _WORD, _WHOLE) for w in own]
            if column.is_slot:
                parts.append((column.word, _SLOT_DESCENDING if one.descending else _SLOT, _WHOLE))
            elif not any(w.how == "value" for w in own):
                parts += column.parts
        return _matrix(parts)

    @cached_property
    def sort_parts(self) -> Parts:
        """The parts of the total order in which a run is sorted: key, order, then everything else."""
        parts = [*self.key_parts.tolist(), *self.order_parts.tolist()]
        seen = {p[0] for p in parts if p[2] == _WHOLE}
        rest = [p for column in self.columns for p in column.parts if p[0] not in seen]
        nulls = [(w, _WORD, _WHOLE) for w in range(max(1, -(-len(self.columns) // 64)))]
        return _matrix([*parts, *rest, *nulls])

    @cached_property
    def makings(self) -> npt.NDArray[np.int64]:
        """How the order words are made, for `headwater.kernels.arrange.fill_order_words`."""
        made = []
        for w in self.order_words:
            c = self.columns[w.column]
            how = 0 if w.how == "rank" else 2 if c.kind in {"double", "float"} else 1
            source = c.word + (w.how == "low")
            made.append((w.word, source, how, w.descending, c.null_word, c.null_bit, w.nulls_first))
        return np.array(made, dtype=np.int64).reshape(len(made), 7)

    @cached_property
    def codes(self) -> npt.NDArray[np.int64]:
        """How the columns are packed and unpacked, for `headwater.kernels.arrow`."""
        return np.array([c.code for c in self.columns], dtype=np.int64).reshape(len(self.columns), 5)

    @cached_property
    def codes_with_weight(self) -> npt.NDArray[np.int64]:
        """The same, and the last weight as a column."""
        return np.vstack([self.codes, np.array([[CODES["int64"], self.width - 1, 0, 0, 0]], dtype=np.int64)])

    @cached_property
    def has_nested(self) -> bool:
        """Are there columns of nested types?"""
        return any(c.kind == "nested" for c in self.columns)

    @cached_property
    def plain(self) -> pa.Schema:
        """The schema with bytes for the columns of nested types."""
        return pa.schema(
            [
                f.with_type(pa.binary()) if c.kind == "nested" else f
                for c, f in zip(self.columns, self.schema, strict=True)
            ]
        )

    @cached_property
    def plain_with_weight(self) -> pa.Schema:
        """The same, and the weight as the last column."""
        return self.plain.append(pa.field(WEIGHT, pa.int64(), nullable=False))

    @cached_property
    def slots(self) -> npt.NDArray[np.int64]:
        """The first words of the columns of variable length."""
        return np.array([c.word for c in self.columns if c.is_slot], dtype=np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """What a file of rows has to agree with: columns, key, order and weights, as text."""
        columns = ", ".join(f"{c.name} {c.dtype}{'' if c.nullable else ' not null'}" for c in self.columns)
        order = ", ".join(
            f"{o.column}{' desc' if o.descending else ''} nulls {'first' if o.nulls_first else 'last'}"
            for o in self.order
        )
        return f"({columns}) key {self.keys} order ({order}) weights {self.weights}"

    def column(self, name: str) -> Placed:
        """The place of a column, by its name."""
        at: int = self.schema.get_field_index(name)
        return self.columns[at]

    def null_of(self, word: int) -> tuple[int, int]:
        """For the word of a column: which word, and what bit of it, says that it is null; no bit if it never is."""
        for c in self.columns:
            if c.word == word and c.nullable:
                return c.null_word, 1 << c.null_bit if c.null_bit < 63 else -(1 << 63)
        return 0, 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Layout{self.fingerprint}"


def _matrix(parts: Sequence[Sequence[int]]) -> Parts:
    return np.array(parts, dtype=np.int64).reshape(len(parts), 3)
