"""Change batches: what a commit did to a table, exactly.

The problem: "the rows that changed" must survive being added, negated, split, reordered and replayed without
losing a duplicate. The idea: a change is a **Z-set**, a function from rows to integer weights, of which finitely many
are not zero: +1 for a row inserted, -1 for a row deleted, +3 for three equal rows inserted, an update being both.
Z-sets form a group, so changes compose: applying ``a`` and then ``b`` is applying ``a + b``.

A `ChangeBatch` lists (row, weight) pairs as an Arrow table whose last column, ``_weight``, is int64. A row may be
listed more than once; `ChangeBatch.consolidate` adds its weights up and drops what comes to nothing.

Invariants: rows are equal iff their values are bit for bit the same (`headwater.base.rowkey`: 0.0 is not -0.0, NaN is
NaN, null is null); ``_weight`` is never null; weights that do not fit 64 bits are an error, never a wraparound;
equality and emptiness are those of the Z-set, whatever the listing.
"""

from __future__ import annotations

import html
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.consolidation import consolidate_table
from headwater.base.errors import ConstraintError, InputError, SchemaError, UnsupportedError
from headwater.base.packages import required

__all__ = ["WEIGHT", "ChangeBatch", "as_table", "show_value"]

WEIGHT = "_weight"
"""The name of the column of weights."""

_WEIGHT_FIELD = pa.field(WEIGHT, pa.int64(), nullable=False)
_SHOWN_ROWS = 20
_MOST_ROWS = 1 << 31

Weights = npt.NDArray[np.int64]


class ChangeBatch:
    """A Z-set of rows: an Arrow table with a weight for each row.

    Examples
    --------
    >>> import pyarrow as pa
    >>> old, new = pa.table({"id": [1, 2, 2]}), pa.table({"id": [2, 3]})
    >>> change = ChangeBatch.diff(old, new)
    >>> change
    ChangeBatch(3 rows, +1 -2: id int64)
    >>> change.to_arrow().to_pylist()
    [{'id': 1, '_weight': -1}, {'id': 2, '_weight': -1}, {'id': 3, '_weight': 1}]
    >>> sorted(change.apply_to(old)["id"].to_pylist())
    [2, 3]
    >>> (change - change).is_empty
    True
    """

    __slots__ = ("_consolidated", "_table")

    def __init__(self, table: pa.Table, *, consolidated: bool = False) -> None:
        assert table.num_columns and table.schema.field(-1).equals(_WEIGHT_FIELD), "use the from_ constructors"
        self._table = table
        self._consolidated = consolidated or table.num_rows == 0

    # -- making one ------------------------------------------------------------------------------------------------

    @classmethod
    def from_rows(cls, rows: object, *, weight: int = 1) -> Self:
        """Each row of ``rows`` (Arrow, or anything with an Arrow stream), with the same weight."""
        table = as_table(rows)
        return cls(_weighted(table, np.full(table.num_rows, _as_weight(weight), dtype=np.int64)))

    @classmethod
    def from_table(cls, data: object) -> Self:
        """Rows with their own ``_weight`` column, of any integer type, in any position."""
        table = as_table(data)
        if table.schema.names.count(WEIGHT) != 1:
            raise SchemaError.missing_columns([WEIGHT], where="a change batch")
        position = table.schema.get_field_index(WEIGHT)
        weights = table.column(position)
        if not pa.types.is_integer(weights.type):
            raise SchemaError.type_clash(WEIGHT, str(weights.type), "int64", where="a change batch")
        if weights.null_count:
            raise ConstraintError.not_null(WEIGHT, weights.null_count, where="a change batch")
        try:
            plain = weights.cast(pa.int64())
        except pa.ArrowInvalid:
            raise ConstraintError.weight_overflow() from None
        return cls(table.remove_column(position).append_column(_WEIGHT_FIELD, plain))

    @classmethod
    def empty(cls, schema: pa.Schema) -> Self:
        """No change, of rows of ``schema``."""
        return cls.from_rows(schema.empty_table())

    @classmethod
    def diff(cls, old: object, new: object) -> Self:
        """The change, consolidated, that turns ``old`` into ``new``, as multisets of rows."""
        return (cls.from_rows(old, weight=-1) + cls.from_rows(new)).consolidate()

    # -- looking at it ---------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows, without ``_weight``."""
        return self._table.schema.remove(self._table.num_columns - 1)

    @property
    def table(self) -> pa.Table:
        """The rows with ``_weight`` as the last column."""
        return self._table

    @property
    def rows(self) -> pa.Table:
        """The rows without their weights."""
        return self._table.remove_column(self._table.num_columns - 1)

    @property
    def weights(self) -> Weights:
        """The weights, one for each row."""
        return cast("Weights", self._table.column(self._table.num_columns - 1).to_numpy())

    @property
    def num_rows(self) -> int:
        """How many (row, weight) pairs are listed."""
        return int(self._table.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __bool__(self) -> bool:
        return not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing: every row's weights come to zero."""
        return self.num_rows == 0 or self.consolidate().num_rows == 0

    def inserted(self) -> pa.Table:
        """The rows of positive weight, each as often as its weight says."""
        return self._repeated(np.maximum(self.weights, 0))

    def deleted(self) -> pa.Table:
        """The rows of negative weight, each as often as its weight says."""
        return self._repeated(-np.minimum(self.weights, 0))

    def _repeated(self, times: Weights) -> pa.Table:
        if float(times.sum(dtype=np.float64)) > _MOST_ROWS or (times < 0).any():
            raise UnsupportedError.operation("listing each row", "there are more than 2**31", "use table and weights")
        return rowkey.take_rows(self.rows, np.repeat(np.arange(self.num_rows), times))

    # -- the group -------------------------------------------------------------------------------------------------

    def consolidate(self) -> Self:
        """The same Z-set with each row listed once, and only if its weight is not zero; by first appearance."""
        if self._consolidated:
            return self
        return type(self)(consolidate_table(self._table), consolidated=True)

    def negate(self) -> Self:
        """The opposite change (``-``): what was inserted is deleted, and the reverse."""
        weights = self.weights
        if self.num_rows and weights.min() == np.iinfo(np.int64).min:
            raise ConstraintError.weight_overflow()
        result = type(self)(_weighted(self.rows, -weights))
        result._consolidated = self._consolidated
        return result

    def add(self, other: ChangeBatch) -> Self:
        """Both changes (``+``), as one listing: `consolidate` adds the weights up.

        Columns are matched by name; types must be the same, up to their encoding (string, large_string, string_view
        and dictionaries of them are one type), and the result has the types of this batch.
        """
        theirs = _conform(other.rows, self.schema).append_column(_WEIGHT_FIELD, other._table.columns[-1])
        if not self.num_rows or not other.num_rows:
            whole, result = (self, type(self)(self._table)) if self.num_rows else (other, type(self)(theirs))
            result._consolidated = whole._consolidated
            return result
        return type(self)(_concat(self._table, theirs))

    def __neg__(self) -> Self:
        return self.negate()

    def __add__(self, other: object) -> Self:
        return self.add(other) if isinstance(other, ChangeBatch) else NotImplemented

    def __sub__(self, other: object) -> Self:
        return self.add(other.negate()) if isinstance(other, ChangeBatch) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChangeBatch):
            return NotImplemented
        try:
            theirs = ChangeBatch(
                _conform(other.rows, self.schema).append_column(_WEIGHT_FIELD, other._table.columns[-1])
            )
        except SchemaError:
            return False
        mine, theirs = self.consolidate(), theirs.consolidate()
        if mine.num_rows != theirs.num_rows or mine.num_rows == 0:
            return mine.num_rows == theirs.num_rows
        # Both list each row once, so they are equal iff the pairs (row, weight) are: no sum can overflow here.
        pairs = rowkey.row_codes(_concat(mine._table, theirs._table))
        return pairs.bound == mine.num_rows

    __hash__ = None  # type: ignore[assignment]

    def apply_to(self, table: object) -> pa.Table:
        """``table`` after this change: its rows in their order without the deleted ones, then the inserted ones.

        Raises
        ------
        ConstraintError
            a row is to be deleted more often than ``table`` has it; E2101
        """
        base = as_table(table)
        change = ChangeBatch.empty(base.schema).add(self).consolidate()
        if not change.num_rows:
            return base
        rows = base.num_rows
        codes = rowkey.row_codes(_concat(base, change.rows))
        net = np.zeros(codes.bound, dtype=np.int64)
        net[codes.ids[rows:]] = change.weights
        in_base = codes.ids[:rows]
        candidates = np.flatnonzero(net[in_base] < 0)
        order = candidates[np.argsort(in_base[candidates], kind="stable")]
        sorted_codes = in_base[order]
        nth = np.arange(len(order)) - np.searchsorted(sorted_codes, sorted_codes)  # 0 for the first of equal rows
        drop = order[nth < -net[sorted_codes]]
        _check_all_deleted(change, codes.ids[rows:], in_base[drop], net)
        keep = np.ones(rows, dtype=np.bool_)
        keep[drop] = False
        kept = rowkey.take_rows(base, np.flatnonzero(keep)) if len(drop) else base
        return _concat(kept, change.inserted())

    # -- handing it on ---------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """The Arrow table, ``_weight`` last."""
        return self._table

    def to_pandas(self) -> Any:
        """A pandas DataFrame, ``_weight`` last."""
        required("pandas", "to_pandas()")
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """A polars DataFrame, ``_weight`` last."""
        return required("polars", "to_polars()").from_arrow(self._table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        weights = self.weights.astype(object)  # sums of Python integers: they cannot overflow
        plus, minus = int(weights[weights > 0].sum()), int(weights[weights < 0].sum())
        noun = "row" if self.num_rows == 1 else "rows"
        return f"ChangeBatch({self.num_rows} {noun}, +{plus} -{-minus}: {columns})"

    def _repr_html_(self) -> str:
        shown = self._table.slice(0, _SHOWN_ROWS)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in [WEIGHT, *self.schema.names])
        columns = [[f"{w:+d}" for w in self.weights[:_SHOWN_ROWS]]]
        columns += [[html.escape(show_value(value)) for value in column] for column in shown.columns[:-1]]
        rows = ("".join(f"<td>{text}</td>" for text in row) for row in zip(*columns, strict=True))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        more = f"<p>… and {self.num_rows - _SHOWN_ROWS} more</p>" if self.num_rows > _SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def as_table(data: object) -> pa.Table:
    """``data`` as an Arrow table: a table, batch, reader, frame, or anything with an Arrow stream.

    >>> as_table([{"id": 1}, {"id": 2}]).num_rows
    2
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        return pa.Table.from_pylist(data)
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__") or isinstance(data, dict):
        return pa.table(data)
    raise InputError.not_arrow(type(data).__name__)


def show_value(value: pa.Scalar) -> str:
    """``str(value)``, also for dates that Python has no years for."""
    try:
        return str(value)
    except (ValueError, OverflowError):
        return f"{value.type}({value.value})" if pa.types.is_temporal(value.type) else f"{value.type}(…)"


def _concat(first: pa.Table, second: pa.Table) -> pa.Table:
    """Both tables, of one schema but for nullability: a column is nullable if it is in either."""
    return pa.concat_tables([first, second], promote_options="default")


def _weighted(rows: pa.Table, weights: Weights) -> pa.Table:
    if WEIGHT in rows.schema.names:
        raise InputError.bad_argument(
            "rows", f"a table with a column {WEIGHT}", "rows without weights; from_table() takes rows with them"
        )
    if not rows.num_columns:
        return pa.Table.from_arrays([pa.array(weights)], schema=pa.schema([_WEIGHT_FIELD]))
    return rows.append_column(_WEIGHT_FIELD, pa.array(weights, type=pa.int64()))


def _as_weight(weight: object) -> int:
    if not isinstance(weight, int) or isinstance(weight, bool):
        raise InputError.bad_argument("weight", weight, "an integer")
    if not -(1 << 63) <= weight < 1 << 63:
        raise ConstraintError.weight_overflow()
    return weight


def _check_all_deleted(change: ChangeBatch, codes: rowkey.Ids, dropped: rowkey.Ids, net: Weights) -> None:
    found = np.bincount(dropped, minlength=len(net))
    lacking = np.flatnonzero(found[codes] < -net[codes])
    if len(lacking):
        row = change.rows.slice(int(lacking[0]), 1)
        text = ", ".join(f"{name}={show_value(row.column(i)[0])}" for i, name in enumerate(row.schema.names))
        raise ConstraintError.absent_rows(len(lacking), text[:200])


def _conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """``rows`` with the columns of ``schema`` in their order, and their encodings; or a SchemaError."""
    if rows.schema.names != schema.names:
        extra = [name for name in rows.schema.names if name not in schema.names]
        missing = [name for name in schema.names if name not in rows.schema.names]
        if extra:
            why = f"there are other columns: {', '.join(extra)}"
            raise SchemaError.conflicting(why, "a change batch", "select the same columns on both sides")
        if missing or len(rows.schema.names) != len(schema.names):
            raise SchemaError.missing_columns(missing or sorted(schema.names), where="a change batch")
        rows = rows.select(schema.names)
    columns = []
    for column, field in zip(rows.columns, schema, strict=True):
        if rowkey.plain_type(column.type) != rowkey.plain_type(field.type):
            raise SchemaError.type_clash(field.name, str(column.type), str(field.type), where="a change batch")
        columns.append(column if column.type == field.type else column.cast(field.type))
    fields = [want.with_nullable(have.nullable) for want, have in zip(schema, rows.schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, schema.metadata)) if columns else rows
