"""Statistics: what a data file is known to hold, so that readers need not open it.

Each ``add`` action carries a JSON text (a string inside the action). It is made from the Parquet footer alone,
whoever wrote the file, and never from the rows:

    {"numRecords": 3,                                    always there: without it engines count wrongly
     "minValues": {"id": 1, "at": {"city": "Bern"}},     nested columns as nested objects, physical names
     "maxValues": {"id": 9, "at": {"city": "Ulm"}},
     "nullCount": {"id": 0, "at": {"city": 1}},
     "tightBounds": true}                                optional; false once a deletion vector hides rows

How a value is written:

    integers    as they are
    floats      shortest digits; a bound of zero is -0.0 below and 0.0 above; an infinite bound is left out
    decimals    as JSON numbers with exact digits
    strings     at most 32 UTF-16 units; a longer minimum is cut; a longer maximum is cut and one character
                larger than the one that follows is appended (U+007F or U+10FFFF), or it is left out
    dates       "2020-01-31"
    timestamps  "2020-01-31T10:00:00.123Z", the minimum rounded down to milliseconds, the maximum up; without
                the Z for timestamp_ntz
    boolean, binary, arrays, maps, variants: no bounds (and for the last three no null count: footers have none)

Invariants: every value of the column lies between its bounds, NaN being the largest float as in Spark; a bound
that cannot be vouched for is left out. Writers other than parquet-mr hide NaN from the footer, so bounds of their
float columns are written only for columns the caller has looked at (``nan_free``).
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.base.errors import InputError

__all__ = ["from_footer", "loosen", "nan_free_columns", "num_records", "truncate_max", "truncate_min"]

_PREFIX = 32
_ASCII_MAX = "\x7f"
_UNICODE_MAX = "\U0010ffff"
_EPOCH = dt.date(1970, 1, 1).toordinal()
_UNITS_PER_MS = {"milliseconds": 1, "microseconds": 1_000, "nanoseconds": 1_000_000}
# Spark marks files whose old dates follow the Julian calendar; their numbers do not mean what they say.
_LEGACY_CALENDAR = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}

Path = tuple[str, ...]


def from_footer(
    md: pq.FileMetaData,
    schema: pa.Schema | None = None,
    *,
    num_indexed: int = 32,
    columns: Sequence[str] | None = None,
    partition_columns: Collection[str] = (),
    nan_free: Collection[str] = (),
    tight_bounds: bool | None = None,
) -> str:
    """Statistics of one data file, from its footer.

    Parameters
    ----------
    md
        The footer.
    schema
        The table's columns by physical name, whose order says which come first; the file's own if None.
    num_indexed
        How many leaf columns to describe (``delta.dataSkippingNumIndexedCols``); -1 for all of them. An array or
        a map counts as one.
    columns
        Physical names, dots for nested ones, instead of the first ``num_indexed``
        (``delta.dataSkippingStatsColumns``); the name of a struct takes all its leaves.
    partition_columns
        Columns whose values lie in the action; they have no statistics and do not count.
    nan_free
        Float columns (dotted) that are known to hold no NaN; see `nan_free_columns`.
    tight_bounds
        Written as ``tightBounds`` if it is not None.

    >>> import io
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"id": [3, 1, None], "name": ["b", "a", "c"]}), file)
    >>> from_footer(pq.read_metadata(file), num_indexed=1)
    '{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":3},"nullCount":{"id":1}}'
    """
    fields = _leaves(md.schema.to_arrow_schema() if schema is None else schema, partition_columns)
    if columns is not None:
        chosen = [p for p in fields if any(_is_under(p, name) for name in columns)]
    else:
        chosen = list(fields)[: num_indexed if num_indexed >= 0 else None]
    at = _indices(md) if chosen else {}
    nan_is_shown = (md.created_by or "").startswith("parquet-mr")
    legacy = not _LEGACY_CALENDAR.isdisjoint(md.metadata or {})
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path in chosen:
        dotted = ".".join(path)
        index = at.get(dotted)
        if index is None or md.schema.column(index).max_repetition_level:
            continue
        low, high, null_count = _of_column(md, index)
        if null_count is not None:
            _put(nulls, path, null_count)
        if low is None or high is None:
            continue
        texts = _bounds(md.schema.column(index), low, high, nan_is_shown or dotted in nan_free, legacy)
        for target, text in zip((lows, highs), texts, strict=True):
            if text is not None:
                _put(target, path, _Verbatim(text))
    body: dict[str, Any] = {"numRecords": md.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}
    if tight_bounds is not None:
        body["tightBounds"] = tight_bounds
    return _dump(body)


def nan_free_columns(table: pa.Table | pa.RecordBatch) -> frozenset[str]:
    """The float columns (dotted if nested in structs) in which no value is NaN: one pass over those columns only.

    >>> sorted(nan_free_columns(pa.table({"a": [1.0, None], "b": [float("nan"), 1.0], "c": [1, 2]})))
    ['a']
    """
    found: set[str] = set()

    def look(name: str, values: pa.Array | pa.ChunkedArray) -> None:
        if pa.types.is_struct(values.type):
            for child in values.type:
                look(f"{name}.{child.name}", pc.struct_field(values, child.name))
        elif pa.types.is_floating(values.type) and not pc.any(pc.is_nan(values)).as_py():
            found.add(name)

    for name in table.schema.names:
        look(name, table.column(name))
    return frozenset(found)


def num_records(stats: str | None) -> int | None:
    """Rows in the file before its deletion vector, or None where the text does not say.

    >>> num_records('{"numRecords":7}'), num_records(""), num_records(None)
    (7, None, None)
    """
    try:
        value = json.loads(stats or "{}").get("numRecords")
    except (ValueError, AttributeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def loosen(stats: str | None, *, rows: int | None = None, deleted: int = 0) -> str:
    """The statistics once a deletion vector hides rows: bounds and ``numRecords`` stay, ``tightBounds`` is false.

    Parameters
    ----------
    stats
        The text of the ``add`` action.
    rows
        Rows in the file, for actions whose statistics lack ``numRecords`` (with a vector it must be there).
    deleted
        Rows an earlier vector had taken out when these statistics were made. A null count that covered all the
        others now covers the whole file, which is how loose statistics say "only nulls".

    >>> loosen('{"numRecords":2,"maxValues":{"a":1.10}}')
    '{"numRecords":2,"maxValues":{"a":1.10},"tightBounds":false}'
    """
    try:
        parsed = json.loads(stats or "{}", parse_float=_Verbatim, parse_constant=lambda _: None)
    except ValueError:
        parsed = {}
    body: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
    count = body.get("numRecords")
    count = rows if count is None else count
    if not isinstance(count, int):
        raise InputError.bad_argument("stats", stats, "statistics with numRecords, or `rows`: the vector needs it")
    if deleted and body.get("tightBounds", True) is True and isinstance(body.get("nullCount"), dict):
        body["nullCount"] = _replace(body["nullCount"], count - deleted, count)
    return _dump({"numRecords": count} | body | {"numRecords": count, "tightBounds": False})


def truncate_min(text: str, length: int = _PREFIX) -> str:
    """The longest prefix of whole characters within about ``length`` UTF-16 units: never larger than ``text``.

    >>> truncate_min("abcdef", 3)
    'abc'
    """
    if len(text) * 2 <= length:
        return text
    units = 0
    for i, c in enumerate(text):
        if units >= length:
            return text[:i]
        units += 1 if c <= "\uffff" else 2
    return text


def truncate_max(text: str, length: int = _PREFIX) -> str | None:
    """A short string that is at least as large as ``text``, or None if there is none of reasonable length.

    >>> truncate_max("abcdef", 3) > "abcdef", truncate_max("abc", 3)
    (True, 'abc')
    """
    cut = len(truncate_min(text, length))
    while cut < len(text):
        if cut > 2 * length:
            return None
        following = text[cut]
        if following != _UNICODE_MAX:
            return text[:cut] + (_ASCII_MAX if following < _ASCII_MAX else _UNICODE_MAX)
        cut += 1
    return text


# ---- columns ---------------------------------------------------------------------------------------------


def _leaves(schema: pa.Schema, partition_columns: Collection[str]) -> list[Path]:
    def below(path: Path, kind: pa.DataType) -> Iterator[Path]:
        if pa.types.is_struct(kind) and not _is_variant(kind):
            for child in kind:
                yield from below((*path, child.name), child.type)
        else:
            yield path

    return [p for f in schema if f.name not in partition_columns for p in below((f.name,), f.type)]


def _indices(md: pq.FileMetaData) -> dict[str, int]:
    """Leaf columns by dotted path; two columns that share one (``a.b`` and ``b`` in ``a``) are left out."""
    paths = [md.schema.column(i).path for i in range(md.num_columns)]
    return {path: i for i, path in enumerate(paths) if paths.count(path) == 1}


def _is_variant(kind: pa.DataType) -> bool:
    names = {child.name for child in kind}
    return names in ({"metadata", "value"}, {"metadata", "value", "typed_value"}) and all(
        pa.types.is_binary(child.type) or pa.types.is_large_binary(child.type)
        for child in kind
        if child.name != "typed_value"
    )


def _is_under(path: Path, name: str) -> bool:
    dotted = ".".join(path).lower()
    return dotted == name.lower() or dotted.startswith(name.lower() + ".")


def _of_column(md: pq.FileMetaData, index: int) -> tuple[Any, Any, int | None]:
    """Smallest and largest raw value and the nulls over all row groups, each None if some group does not say."""
    lows: list[Any] = []
    highs: list[Any] = []
    nulls: int | None = 0
    bounded = True
    for group in range(md.num_row_groups):
        chunk = md.row_group(group).column(index)
        if not chunk.num_values:
            continue
        found = chunk.statistics
        if found is None or not found.has_null_count:
            nulls = None
        elif nulls is not None:
            nulls += found.null_count
        if found is not None and found.has_min_max:
            lows.append(_comparable(md, index, found.min_raw))
            highs.append(_comparable(md, index, found.max_raw))
        elif found is None or not found.has_null_count or found.null_count != chunk.num_values:
            bounded = False
    if not lows or not bounded or any(isinstance(v, float) and math.isnan(v) for v in lows + highs):
        return None, None, nulls
    return min(lows), max(highs), nulls


def _comparable(md: pq.FileMetaData, index: int, raw: Any) -> Any:
    # Decimals in bytes are two's complement, big endian: as bytes they would sort negative numbers last.
    if isinstance(raw, bytes) and md.schema.column(index).logical_type.type == "DECIMAL":
        return int.from_bytes(raw, "big", signed=True)
    return raw


# ---- values ----------------------------------------------------------------------------------------------


def _bounds(
    column: pq.ColumnSchema, low: Any, high: Any, no_hidden_nan: bool, legacy: bool
) -> tuple[str | None, str | None]:
    """Both bounds as JSON texts, None for those that are not to be written."""
    kind, physical = column.logical_type.type, column.physical_type
    if physical in ("FLOAT", "DOUBLE"):
        if not no_hidden_nan:
            return None, None
        return _float(low, -0.0), _float(high, 0.0)
    if physical == "BOOLEAN" or (legacy and kind in ("DATE", "TIMESTAMP")):
        return None, None
    if kind == "STRING":
        return _string(low, upper=False), _string(high, upper=True)
    if kind == "DECIMAL":
        return _decimal(low, column.scale), _decimal(high, column.scale)
    if kind == "DATE":
        return _date(low), _date(high)
    if kind == "TIMESTAMP":
        facts = json.loads(column.logical_type.to_json())
        per_ms, zone = _UNITS_PER_MS[facts["timeUnit"]], "Z" if facts["isAdjustedToUTC"] else ""
        return _timestamp(low // per_ms, zone), _timestamp(-(-high // per_ms), zone)
    if physical in ("INT32", "INT64") and (kind == "NONE" or (kind == "INT" and "=true" in str(column.logical_type))):
        return str(low), str(high)
    return None, None  # binary, time, unsigned integers, …


def _float(value: float, zero: float) -> str | None:
    return None if math.isinf(value) else repr(value or zero)


def _string(raw: bytes, *, upper: bool) -> str | None:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    cut = truncate_max(text) if upper else truncate_min(text)
    return None if cut is None else json.dumps(cut, ensure_ascii=False)


def _decimal(unscaled: int, scale: int) -> str:
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return format(Decimal((int(unscaled < 0), digits, -scale)), "f")


def _date(days: int) -> str | None:
    try:
        return f'"{dt.date.fromordinal(_EPOCH + days).isoformat()}"'
    except (ValueError, OverflowError):  # outside the years 1 to 9999
        return None


def _timestamp(ms: int, zone: str) -> str | None:
    days, rest = divmod(ms, 86_400_000)
    date = _date(days)
    if date is None:
        return None
    seconds, fraction = divmod(rest, 1000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d}"
    return f'{date[:-1]}T{clock}{zone}"'


# ---- JSON ------------------------------------------------------------------------------------------------


class _Verbatim(str):
    """JSON text that is to be written as it is, so that numbers keep their digits."""

    __slots__ = ()


def _dump(value: Any) -> str:
    if isinstance(value, _Verbatim):
        return str(value)
    if type(value) is int:
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{encode_basestring(k)}:{_dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dump, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _replace(tree: Mapping[str, Any], old: int, new: int) -> dict[str, Any]:
    """``tree`` with each leaf that equals ``old`` changed to ``new``."""
    return {k: _replace(v, old, new) if isinstance(v, dict) else new if v == old else v for k, v in tree.items()}
