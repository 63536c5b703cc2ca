"""Row keys: which rows of a table are the same row, for every Arrow type, without a loop over rows.

The problem: a Z-set adds up the weights of equal rows, so equality must be exact, total and fast. Arrow can
group by plain columns only (no floats by their bits, no lists, structs or maps), and hashes alone would lie.

The idea: replace each column by integer **codes**, such that two rows have equal codes iff their values are
equal, and combine the codes of several columns as digits of one number (mixed radix), re-numbering by a hash
table whenever the number would outgrow 62 bits.

- integers, dates, times, decimals, strings and bytes: the value itself, numbered by Arrow's hash table, or
  shifted to start at zero where the range is small;
- floats: their bits, after making all NaNs one NaN;
- dictionaries: the code of the value an index points to, so different encodings of a value are equal;
- structs: the digits are the validity and the codes of the children;
- lists of any kind and maps: the codes of the flattened children, sliced by the offsets, are byte strings.

Invariants: null equals null and nothing else; 0.0 and -0.0 differ; a value below a null parent is never looked
at; slices and chunk borders make no difference; codes of `row_codes` are dense, numbered by first appearance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Codes", "column_codes", "count_common", "plain_type", "row_codes", "take_rows"]

Ids = npt.NDArray[np.int64]

_RADIX_LIMIT = 1 << 62


class Codes(NamedTuple):
    """One integer of ``range(bound)`` per row: equal iff the rows are equal.

    ``dense`` says that every number of the range occurs, and that they first occur in rising order.
    """

    ids: Ids
    bound: int
    dense: bool = False

    @property
    def all_distinct(self) -> bool:
        """Whether the codes are known to tell every row from every other."""
        return self.dense and self.bound == len(self.ids)

    def first_rows(self) -> Ids:
        """The position of the first row of each code, in order of the codes (which must be dense)."""
        assert self.dense, "codes without a row have no first row"
        first = np.empty(self.bound, dtype=np.int64)
        first[self.ids[::-1]] = np.arange(len(self.ids) - 1, -1, -1, dtype=np.int64)  # the last assignment wins
        return first


def row_codes(table: pa.Table, columns: Sequence[str | int] | None = None) -> Codes:
    """Number the rows of ``table`` by their values in ``columns`` (default: all), from 0, by first appearance.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of names or positions, optional

    Returns
    -------
    Codes
        dense: ``bound`` is the number of different rows

    Examples
    --------
    >>> import pyarrow as pa
    >>> row_codes(pa.table({"x": [0.0, -0.0, 0.0, None], "tags": [["a"], [], ["a"], None]})).ids.tolist()
    [0, 1, 0, 2]
    """
    chosen = range(table.num_columns) if columns is None else columns
    rows = _constant(table.num_rows)
    for column in chosen:
        codes = column_codes(table.column(column), label=str(table.field(column).name))
        rows = codes if codes.all_distinct else _combine(rows, codes)
        if rows.all_distinct:
            break  # no other column can tell more rows apart
    return _dense(rows)


def count_common(one: pa.Table, other: pa.Table) -> int:
    """How many rows of ``other`` are among those of ``one``; the two have the same columns.

    >>> import pyarrow as pa
    >>> count_common(pa.table({"x": [1, 2]}), pa.table({"x": [2, 2, 3]}))
    2
    """
    codes = row_codes(pa.concat_tables([one, other])).ids
    return int(np.isin(codes[one.num_rows :], codes[: one.num_rows]).sum())


def column_codes(column: pa.ChunkedArray | pa.Array, *, label: str = "") -> Codes:
    """Number the values of one column of any type; not always densely (see `row_codes` for that).

    >>> import pyarrow as pa
    >>> column_codes(pa.array([{"a": 1}, None, {"a": None}, {"a": 1}])).ids.tolist()
    [2, 1, 3, 2]
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return _codes([chunk for chunk in chunks if len(chunk)], column.type, label)


def take_rows(table: pa.Table, rows: Ids) -> pa.Table:
    """``table.take`` for every type: Arrow has none for string views, and breaks arrays with a null type inside."""
    if not table.num_columns:
        return table.slice(0, 0) if len(rows) == 0 else pa.table([pa.nulls(len(rows))], names=["_"]).select([])
    return pa.Table.from_arrays([_take(column, rows) for column in table.columns], schema=table.schema)


def _take(column: pa.ChunkedArray, rows: Ids) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_nested(kind) and _holds_null_type(kind):  # a column of no use: slow will do
        slices = [chunk for row in rows.tolist() for chunk in column.slice(row, 1).chunks]
        return pa.chunked_array([pa.concat_arrays(slices)] if slices else [], type=kind)
    plain = _without_views(kind)
    indices = pa.array(rows, type=pa.int64())
    return column.take(indices) if plain is kind else column.cast(plain).take(indices).cast(kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without its encoding: one string type, one list type, no dictionaries, all nullable.

    >>> import pyarrow as pa
    >>> plain_type(pa.large_list(pa.dictionary(pa.int8(), pa.string_view())))
    ListType(list<item: string>)
    """
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([(kind.field(i).name, plain_type(kind.field(i).type)) for i in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def _codes(chunks: list[pa.Array], kind: pa.DataType, label: str) -> Codes:
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _codes([chunk.storage for chunk in chunks], kind.storage_type, label)
    if types.is_null(kind):
        return _constant(sum(map(len, chunks)))
    if types.is_dictionary(kind):
        return _dictionary_codes(chunks, kind, label)
    if types.is_struct(kind):
        return _struct_codes(chunks, kind, label)
    if types.is_map(kind):
        entries = pa.list_(pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False))
        return _list_codes([chunk.cast(entries) for chunk in chunks], entries, label)
    if (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    ):
        return _list_codes(chunks, kind, label)
    if types.is_union(kind) or types.is_run_end_encoded(kind):
        raise UnsupportedError.column_type(label or "?", str(kind), "cast the column to a plain type first")
    return _leaf_codes(chunks, kind)


def _constant(length: int) -> Codes:
    return Codes(np.zeros(length, dtype=np.int64), min(1, length), dense=True)


def _leaf_codes(chunks: list[pa.Array], kind: pa.DataType) -> Codes:
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 0:
        return _validity_codes(chunks)
    plain, convert = _plain_leaf(kind)
    values = pa.concat_arrays([convert(chunk) for chunk in chunks]) if chunks else pa.array([], type=plain)
    if pa.types.is_integer(plain):
        shifted = _shifted(values)
        if shifted is not None:
            return shifted
    return _encoded(values)


def _plain_leaf(kind: pa.DataType) -> tuple[pa.DataType, Callable[[pa.Array], pa.Array]]:
    """The type in which Arrow can hash ``kind`` by its bits, and how a chunk gets there."""
    types = pa.types
    if types.is_boolean(kind):
        return pa.int8(), lambda chunk: chunk.cast(pa.int8())
    if types.is_floating(kind):
        return _float_bits(kind)
    if types.is_integer(kind) or types.is_fixed_size_binary(kind):
        return kind, lambda chunk: chunk
    if types.is_primitive(kind) or types.is_decimal(kind):  # dates, times, durations, intervals, decimals
        width = kind.bit_width // 8
        plain = {4: pa.int32(), 8: pa.int64()}.get(width, pa.binary(width))
        return plain, lambda chunk: chunk.view(plain)
    return pa.large_binary(), lambda chunk: chunk.cast(pa.large_binary())  # strings and bytes of all kinds


def _float_bits(kind: pa.DataType) -> tuple[pa.DataType, Callable[[pa.Array], pa.Array]]:
    plain, infinity = {
        16: (pa.uint16(), 0x7C00),
        32: (pa.uint32(), 0x7F80_0000),
        64: (pa.uint64(), 0x7FF0_0000_0000_0000),
    }[kind.bit_width]
    magnitude = (1 << (kind.bit_width - 1)) - 1

    def convert(chunk: pa.Array) -> pa.Array:
        bits = chunk.view(plain)
        raw = bits.fill_null(0).to_numpy(zero_copy_only=False)
        is_nan = (raw & raw.dtype.type(magnitude)) > infinity
        if not is_nan.any():
            return bits
        one_nan = np.where(is_nan, raw.dtype.type(magnitude), raw)
        return pa.array(one_nan, type=plain, mask=_is_null(chunk))

    return plain, convert


def _shifted(values: pa.Array) -> Codes | None:
    """Codes of integers of a small range, by subtraction; None where hashing is needed or may prove uniqueness."""
    low, high = (bound.as_py() for bound in pc.min_max(values).values())
    if low is None or high - low + 2 >= len(values):
        return _constant(len(values)) if low is None else None
    raw = values.fill_null(low).to_numpy(zero_copy_only=False)
    wide = np.uint64 if raw.dtype == np.uint64 else np.int64
    ids = (raw.astype(wide) - wide(low)).astype(np.int64)
    if values.null_count:
        ids[_is_null(values)] = high - low + 1
    return Codes(ids, high - low + 2)


def _encoded(values: pa.Array) -> Codes:
    encoded = values.dictionary_encode(null_encoding="encode")
    return Codes(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary), dense=True)


def _is_null(array: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _validity_codes(chunks: list[pa.Array]) -> Codes:
    if not any(chunk.null_count for chunk in chunks):
        return _constant(sum(map(len, chunks)))
    return Codes(np.concatenate([~_is_null(chunk) for chunk in chunks]).astype(np.int64), 2)


def _dictionary_codes(chunks: list[pa.Array], kind: pa.DataType, label: str) -> Codes:
    dictionaries = [chunk.dictionary for chunk in chunks]
    words = _codes([d for d in dictionaries if len(d)], kind.value_type, label)
    starts = np.cumsum([0, *map(len, dictionaries)])
    # Null by a null index and null by a null word are one value: both get the code after the last.
    null_words = np.concatenate([np.zeros(0, dtype=np.bool_), *(_is_null(d) for d in dictionaries)])
    by_word = np.append(np.where(null_words, words.bound, words.ids), words.bound)
    picked = []
    for chunk, start in zip(chunks, starts[:-1], strict=True):
        indices = chunk.indices
        positions = indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64) + start
        picked.append(np.where(_is_null(indices), len(by_word) - 1, positions))
    ids = by_word[np.concatenate(picked)] if picked else np.zeros(0, dtype=np.int64)
    return Codes(ids, words.bound + 1)


def _struct_codes(chunks: list[pa.Array], kind: pa.DataType, label: str) -> Codes:
    codes = _validity_codes(chunks)
    flat = [chunk.flatten() for chunk in chunks]  # a null struct makes its children null
    for position in range(kind.num_fields):
        field = kind.field(position)
        codes = _combine(codes, _codes([children[position] for children in flat], field.type, f"{label}.{field.name}"))
    return codes


def _list_codes(chunks: list[pa.Array], kind: pa.DataType, label: str) -> Codes:
    rows = sum(map(len, chunks))
    flat = [chunk.flatten() for chunk in chunks]  # leaves out what lies below null lists
    children = _dense(_codes([child for child in flat if len(child)], kind.value_type, f"{label}[]"))
    lengths = [pc.list_value_length(chunk).fill_null(0).to_numpy(zero_copy_only=False) for chunk in chunks]
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(np.concatenate([np.zeros(0, dtype=np.int64), *lengths]) * 4, out=offsets[1:])
    valid = np.concatenate([np.zeros(0, dtype=np.bool_), *(~_is_null(chunk) for chunk in chunks)])
    buffers = [
        pa.py_buffer(np.packbits(valid, bitorder="little").tobytes()),
        pa.py_buffer(offsets),
        pa.py_buffer(children.ids.astype(np.int32)),
    ]
    return _encoded(pa.Array.from_buffers(pa.large_binary(), rows, buffers))


def _combine(high: Codes, low: Codes) -> Codes:
    """The codes of pairs: ``high`` and ``low`` as two digits."""
    if high.bound <= 1:
        return low
    if low.bound <= 1:
        return high
    if high.bound * low.bound > _RADIX_LIMIT:
        high = _dense(high)
        if high.all_distinct:
            return high
    if high.bound * low.bound > _RADIX_LIMIT:
        low = _dense(low)
    assert high.bound * low.bound <= _RADIX_LIMIT, "Arrow numbers at most 2**31 values"
    return Codes(high.ids * low.bound + low.ids, high.bound * low.bound)


def _dense(codes: Codes) -> Codes:
    return codes if codes.dense else _encoded(pa.array(codes.ids))


def _holds_null_type(kind: pa.DataType) -> bool:
    return pa.types.is_null(kind) or any(_holds_null_type(kind.field(i).type) for i in range(kind.num_fields))


def _without_views(kind: pa.DataType) -> pa.DataType:
    """``kind`` with string views replaced by large strings; the same object where there are none."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        plain = [_without_views(field.type) for field in fields]
        if all(new is field.type or new == field.type for new, field in zip(plain, fields, strict=True)):
            return kind
        return pa.struct([field.with_type(new) for field, new in zip(fields, plain, strict=True)])
    if types.is_map(kind):
        key, item = _without_views(kind.key_type), _without_views(kind.item_type)
        return kind if key == kind.key_type and item == kind.item_type else pa.map_(key, item)
    for matches, make in (
        (types.is_list, pa.list_),
        (types.is_large_list, pa.large_list),
        (types.is_list_view, pa.list_view),
        (types.is_large_list_view, pa.large_list_view),
        (types.is_fixed_size_list, lambda field: pa.list_(field, kind.list_size)),
    ):
        if matches(kind):
            value = _without_views(kind.value_type)
            return kind if value == kind.value_type else make(kind.value_field.with_type(value))
    return kind
