"""The types that an online table can hold, by name, and how a value of each lies in a record.

There are four ways: `FIXED`, the bytes that Arrow has for it; `FLAG`, a byte for a boolean; `STRING` and `LIST`, a slot
that refers to the heap where the bytes do not fit into it. Types that are only another form of one of these (large
strings, dictionaries, views) are stored as that one. All others are refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from headwater.base.errors import InputError, SchemaError

__all__ = ["FIXED", "FLAG", "LIST", "STRING", "ValueType", "dtype_name", "parse_dtype", "stored_type", "value_type"]

# The same numbers as in `headwater.kernels.online_gather`, which takes a second to import.
FIXED = 0
FLAG = 1
STRING = 2
LIST = 3

_SLOT = 16
_NAMES: dict[str, pa.DataType] = {
    "utf8": pa.string(),
    "binary": pa.binary(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date": pa.date32(),
}
_ALIASES = {"string": "utf8", "boolean": "bool", "float": "float32", "double": "float64", "date32": "date"}
_BY_TYPE = {kind: name for name, kind in _NAMES.items()}
_DECIMAL = re.compile(r"decimal(?:128)?\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_TIMESTAMP = re.compile(r"timestamp(?:\(\s*(s|ms|us|ns)\s*(?:,\s*([\w/+:-]+)\s*)?\))?")
_LIST = re.compile(r"list<\s*(.+?)\s*>")
_EXPECTED = f"one of {', '.join(_NAMES)}, decimal(p,s), timestamp, timestamp(us), timestamp(us,UTC), list<…>"


@dataclass(frozen=True, slots=True)
class ValueType:
    """How a value lies in a record: in which way, in how many bytes, and how wide the items of a list are."""

    kind: int
    width: int
    item: int = 0

    @property
    def is_slot(self) -> bool:
        """Whether it may refer to the heap."""
        return self.kind in (STRING, LIST)


def stored_type(column: str, given: pa.DataType) -> pa.DataType:
    """The type that a column is stored as; an error for a type that cannot be.

    >>> stored_type("name", pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    """
    if pa.types.is_dictionary(given):
        return stored_type(column, given.value_type)
    if pa.types.is_large_string(given) or pa.types.is_string_view(given):
        return pa.string()
    if pa.types.is_large_binary(given) or pa.types.is_binary_view(given) or pa.types.is_fixed_size_binary(given):
        return pa.binary()
    if pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given):
        if _fixed_width(given.value_type):
            return pa.list_(pa.field("item", given.value_type))
    elif (
        given in _BY_TYPE
        or pa.types.is_timestamp(given)
        or (pa.types.is_decimal128(given) or pa.types.is_decimal32(given) or pa.types.is_decimal64(given))
    ):
        return pa.decimal128(given.precision, given.scale) if pa.types.is_decimal(given) else given
    raise SchemaError.not_servable(column, str(given))


def value_type(stored: pa.DataType) -> ValueType:
    """How values of a stored type lie in a record.

    >>> value_type(pa.float32()), value_type(pa.list_(pa.float64())).item
    (ValueType(kind=0, width=4, item=0), 8)
    """
    if pa.types.is_boolean(stored):
        return ValueType(FLAG, 1)
    if pa.types.is_string(stored) or pa.types.is_binary(stored):
        return ValueType(STRING, _SLOT)
    if pa.types.is_list(stored):
        return ValueType(LIST, _SLOT, stored.value_type.bit_width // 8)
    return ValueType(FIXED, stored.bit_width // 8)


def dtype_name(stored: pa.DataType) -> str:
    """The name of a stored type, as configurations and files write it.

    >>> dtype_name(pa.timestamp("us", "UTC")), dtype_name(pa.list_(pa.float32()))
    ('timestamp(us,UTC)', 'list<float32>')
    """
    if pa.types.is_list(stored):
        return f"list<{dtype_name(stored.value_type)}>"
    if pa.types.is_decimal(stored):
        return f"decimal({stored.precision},{stored.scale})"
    if pa.types.is_timestamp(stored):
        return f"timestamp({stored.unit}{',' + stored.tz if stored.tz else ''})"
    return _BY_TYPE[stored]


def parse_dtype(name: str) -> pa.DataType:
    """The type of a name; an error that lists the names.

    >>> parse_dtype("utf8"), parse_dtype("decimal(10,2)")
    (DataType(string), Decimal128Type(decimal128(10, 2)))
    """
    text = name.strip().lower() if not name.strip().lower().startswith("timestamp") else name.strip()
    text = _ALIASES.get(text, text)
    if text in _NAMES:
        return _NAMES[text]
    if (found := _DECIMAL.fullmatch(text)) and 1 <= int(found[1]) <= 38 and int(found[2]) <= int(found[1]):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(found[1] or "us", found[2])
    if found := _LIST.fullmatch(text):
        item = parse_dtype(found[1])
        if _fixed_width(item):
            return pa.list_(pa.field("item", item))
    raise InputError.bad_argument("dtype", name, _EXPECTED)


def _fixed_width(item: pa.DataType) -> bool:
    """Whether lists of a type can be stored."""
    is_known = item in _BY_TYPE or pa.types.is_timestamp(item) or pa.types.is_decimal128(item)
    return is_known and value_type(item).kind == FIXED
