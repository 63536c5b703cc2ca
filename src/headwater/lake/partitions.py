"""Partition values: text in the log, typed values in memory, folders on storage.

The rows of a data file share the values of the partition columns, so the file does not hold those columns: the
values stand in its ``add`` action, as text, by physical column name. The folder a file lies in repeats them for
the human eye, and no reader takes them from there. Three notations, one inside the other:

    value -> text        null (and an empty string, which the format cannot tell from it) is null
      numbers            as digits, floats by their shortest digits, ``NaN``, ``Infinity``, ``-Infinity``
      boolean            ``true``, ``false``
      date               ``2020-01-31``
      timestamp          ``2020-01-31T10:00:00.123456Z``; also read: ``2020-01-31 10:00:00[.123456]``, taken as UTC
      timestamp_ntz      ``2020-01-31 10:00:00[.123456]``
      string             itself
      binary             its bytes as UTF-8 text (control characters get JSON's escapes in the action)
    text -> folder       ``column=text``, Hive's special characters and the blank as %XX; null is
                         ``__HIVE_DEFAULT_PARTITION__``; a name too long for a file system ends in a digest. A
                         timestamp is ``2020-01-31 10:00:00[.123456]`` there, in UTC: delta-spark and delta-rs write
                         folders so, and readers that take values from folders (polars) want one form in a table
    path -> action       the path below the table's folder as RFC 2396 wants it: percent-encoded once more, so a
                         blank reads ``%2520`` in the action, ``%20`` on storage

Invariant: ``parse(serialize(v, kind), kind) == v`` for every value but the empty string and empty bytes, which
come back as null; ``decode_path(encode_path(p)) == p``.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, NotFoundError

__all__ = [
    "decode_path",
    "directory",
    "encode_path",
    "parse",
    "parse_array",
    "serialize",
    "serialize_array",
    "split_by",
]

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_HIVE_SPECIAL = re.compile(r"""[\x00-\x20\x7f"#%'*/:=?\\{\[\]^]""")
_MAX_FOLDER_BYTES = 200  # file systems allow 255 for one name; object stores more
# What java.net.URI leaves alone in a path, which is what delta-spark writes; letters beyond ASCII stay too.
_URI_SPECIAL = re.compile(r"[^A-Za-z0-9\-_.!~*'():@&=+$,;/]")


def serialize(value: Any, kind: pa.DataType) -> str | None:
    """One partition value as the text for an action.

    >>> serialize(dt.datetime(2020, 1, 31, 10, tzinfo=dt.UTC), pa.timestamp("us", "UTC"))
    '2020-01-31T10:00:00.000000Z'
    >>> serialize(1.5, pa.float64()), serialize(True, pa.bool_()), serialize("", pa.string())
    ('1.5', 'true', None)
    """
    if value is None:
        return None
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    if pa.types.is_floating(kind):
        return _float_text(value, kind)
    if pa.types.is_decimal(kind):
        return format(Decimal(value), "f")
    if pa.types.is_timestamp(kind):
        return _timestamp_text(value, zoned=kind.tz is not None)
    if pa.types.is_date(kind):
        return str(value.date() if isinstance(value, dt.datetime) else value)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8") or None
        except UnicodeDecodeError as e:
            raise InputError.bad_argument("value", value, "bytes that are UTF-8: the log keeps them as text") from e
    return str(value) or None


def _float_text(value: float, kind: pa.DataType) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(str(np.float32(value)))) if pa.types.is_float32(kind) else repr(float(value))


def _timestamp_text(value: dt.datetime, *, zoned: bool) -> str:
    if zoned:
        instant = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return instant.isoformat(timespec="microseconds") + "Z"
    text = value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    return text.rstrip("0").rstrip(".") if "." in text else text


def serialize_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column of partition values as texts; work per distinct value, not per row.

    >>> serialize_array(pa.array([1, None, 1])).to_pylist()
    ['1', None, '1']
    """
    codes, texts = _encode(values)
    return pa.array(texts, pa.string()).take(pa.array(codes))


def parse(text: str | None, kind: pa.DataType) -> pa.Scalar[Any]:
    """One partition value from the text of an action.

    >>> parse("2020-01-31 10:00:00", pa.timestamp("us", "UTC")).as_py().isoformat()
    '2020-01-31T10:00:00+00:00'
    >>> parse("", pa.int32()).is_valid
    False
    """
    return pa.scalar(_parse(text, kind), kind)


def parse_array(texts: Sequence[str | None] | pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Many partition values at once, each distinct text parsed once.

    >>> parse_array(["7", None, "7"], pa.int64()).to_pylist()
    [7, None, 7]
    """
    column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, pa.string())
    known: dict[str | None, Any] = {text: _parse(text, kind) for text in column.unique().to_pylist()}
    return pa.array([known[text] for text in column.to_pylist()], kind)


def _parse(text: str | None, kind: pa.DataType) -> Any:
    if text is None or text == "":
        return None
    try:
        value = _parse_text(text, kind)
        pa.scalar(value, kind)  # so that an integer out of range is found here
    except (ValueError, ArithmeticError, pa.ArrowException) as e:
        raise InputError.bad_argument("partition value", text, f"text that is a {kind}") from e
    return value


def _parse_text(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _fail()
    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale))
    if pa.types.is_timestamp(kind):
        moment = dt.datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
        return moment if kind.tz is not None else moment.replace(tzinfo=None)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(text)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return text.encode("utf-8")
    return text


def _fail() -> Any:
    raise ValueError("neither true nor false")


def directory(values: Mapping[str, str | None], timestamps: Collection[str] = ()) -> str:
    """The folder, below the table's, for new files with these values; ``timestamps`` are the columns of that type.

    >>> directory({"a": "1", "b": "x y", "c": None})
    'a=1/b=x%20y/c=__HIVE_DEFAULT_PARTITION__'
    >>> directory({"ts": "2020-01-31T10:00:00.000000Z"}, ["ts"])
    'ts=2020-01-31%2010%3A00%3A00'
    """
    texts = {c: _wall_clock(t) if t and c in timestamps else t for c, t in values.items()}
    return "/".join(_folder(column, text) for column, text in texts.items())


def _wall_clock(text: str) -> str:
    """A timestamp as it stands in the name of a folder."""
    moment = _parse_text(text, pa.timestamp("us", "UTC"))
    return _timestamp_text(moment, zoned=False)


def _folder(column: str, text: str | None) -> str:
    name = f"{_hive(column)}={_hive(text) if text else _NULL_FOLDER}"
    if len(name.encode()) <= _MAX_FOLDER_BYTES:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    kept = name.encode()[: _MAX_FOLDER_BYTES - 20].decode("utf-8", errors="ignore")
    return f"{kept.rsplit('%', 1)[0] if '%' in kept[-2:] else kept}~{digest}"


def _hive(text: str) -> str:
    return _HIVE_SPECIAL.sub(lambda m: f"%{ord(m.group()):02X}", text)


def encode_path(path: str) -> str:
    """A path on storage as it is written in an action.

    >>> encode_path("b=x%20y/part 1.parquet")
    'b=x%2520y/part%201.parquet'
    """
    return _URI_SPECIAL.sub(_encode_character, path)


def _encode_character(found: re.Match[str]) -> str:
    c = found.group()
    keep = c > "\x7f" and unicodedata.category(c) not in ("Zs", "Zl", "Zp", "Cc")
    return c if keep else quote(c, safe="")


def decode_path(path: str) -> str:
    """A path from an action as it lies on storage.

    >>> decode_path("b=x%2520y/part%201.parquet")
    'b=x%20y/part 1.parquet'
    """
    return unquote(path) if "%" in path else path


def split_by(table: pa.Table, columns: Sequence[str]) -> list[tuple[dict[str, str | None], pa.Table]]:
    """The rows by partition: the values as texts, and the rows without the partition columns, in their order.

    Partitions come in the order in which their first rows do.

    >>> parts = split_by(pa.table({"day": ["mo", "tu", "mo"], "n": [1, 2, 3]}), ["day"])
    >>> [(values, rows["n"].to_pylist()) for values, rows in parts]
    [({'day': 'mo'}, [1, 3]), ({'day': 'tu'}, [2])]
    """
    for column in columns:
        if column not in table.schema.names:
            raise NotFoundError.column(column, table.schema.names)
    rest = table.drop_columns(list(columns))
    if not table.num_rows:
        return []
    key = np.zeros(table.num_rows, dtype=np.int64)
    encoded = [_encode(table.column(column)) for column in columns]
    space = 1
    for codes, texts in encoded:
        if space * len(texts) >= 1 << 62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            space = table.num_rows
        key = key * len(texts) + codes
        space *= len(texts)
    # Equal keys side by side, each partition's rows in their old order.
    order = np.argsort(key.astype(np.uint16) if space <= 1 << 16 else key, kind="stable")  # short keys: radix sort
    arranged = key[order]
    starts = np.flatnonzero(np.r_[True, arranged[1:] != arranged[:-1]])
    ends = np.r_[starts[1:], len(key)]
    moved = rest.take(pa.array(order)) if len(starts) > 1 else rest
    parts = []
    for group in np.argsort(order[starts], kind="stable"):
        start, end = int(starts[group]), int(ends[group])
        row = int(order[start])
        values = {column: texts[codes[row]] for column, (codes, texts) in zip(columns, encoded, strict=True)}
        parts.append((values, moved.slice(start, end - start)))
    return parts


def _encode(values: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str | None]]:
    """A code per row, and the text each code stands for; values with one text have one code."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        values = values.cast(kind)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        kind = pa.timestamp("us", kind.tz)
        values = pc.cast(values, kind, safe=False)
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    found = whole.dictionary_encode(null_encoding="encode")
    texts: list[str | None] = []
    code_of: dict[str | None, int] = {}
    recode = np.empty(max(len(found.dictionary), 1), dtype=np.int64)
    for i, value in enumerate(found.dictionary.to_pylist()):
        text = serialize(value, kind)
        if text not in code_of:
            code_of[text] = len(texts)
            texts.append(text)
        recode[i] = code_of[text]
    return recode[found.indices.to_numpy(zero_copy_only=False)], texts
