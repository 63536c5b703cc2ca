"""Documents: rows of a batch as what the library indexes.

The library takes one document at a time. A column is turned into a list of Python values once per batch, with the
conversions of `fields` done on whole columns, and documents are put together from the lists: tokenising a document
takes several times as long as that.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.search.fields import BUILD, DOCUMENT, MAX_TERM_BYTES, NULLS, ODD, PATHS, Field, Fields, path_term

__all__ = ["documents", "values"]

_SAFE_BYTES = MAX_TERM_BYTES // 3  # lowering a character may make it longer
_BLANKS = re.compile(r"[ \t\n\f\r]+")  # what the tokenizer `whitespace` splits at: other blanks are parts of words
_NAN = pa.scalar(float("nan"))
_ADDERS = {
    "text": "add_text",
    "keyword": "add_text",
    "integer": "add_integer",
    "date": "add_integer",
    "timestamp": "add_integer",
    "float": "add_float",
    "boolean": "add_boolean",
    "binary": "add_bytes",
    "ip": "add_ip_addr",
    "json": "add_json",
}


def documents(fields: Fields, batch: pa.RecordBatch, build: int, first: int) -> Iterator[Any]:
    """One document for each row of a batch, whose columns are those of the fields;
    ``first`` is the first one's number.
    """
    import tantivy

    columns: list[tuple[str, str, str | None, str, list[Any]]] = []
    odd: list[tuple[str, list[bool]]] = []
    for number, f in enumerate(fields):
        array = batch.column(number)
        columns.append(
            (_ADDERS[f.kind], fields.name(number), fields.trigrams(number) if f.substring else None, str(number),
             values(f, array))
        )  # fmt: skip
        if (long := _too_long(f, array)) is not None:
            odd.append((str(number), long))
    for row in range(batch.num_rows):
        made = tantivy.Document()
        for adder, name, trigrams, number_text, listed in columns:
            value = listed[row]
            if value is None:
                made.add_text(NULLS, number_text)
            else:
                getattr(made, adder)(name, value)
                if adder == "add_json":
                    for term in _paths(number_text, value):
                        made.add_text(PATHS, term)
                if trigrams is not None:
                    made.add_text(trigrams, value)
        for number_text, which in odd:
            if which[row]:
                made.add_text(ODD, number_text)
        made.add_unsigned(BUILD, build)
        made.add_unsigned(DOCUMENT, first + row)
        yield made


def values(f: Field, array: pa.Array) -> list[Any]:
    """The values of a column as the index takes them; None where there is nothing to index."""
    if f.kind == "timestamp":
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64())
    elif f.kind == "date":
        array = array.cast(pa.date32()).cast(pa.int32())
    elif f.kind == "float":
        array = pc.add(array.cast(pa.float64(), safe=False), 0.0)  # -0.0 is 0.0
        array = pc.if_else(pc.is_nan(array), _NAN, array)  # one with its sign set would be the smallest number
    listed: list[Any] = array.to_pylist()
    if f.kind == "json":
        return [None if one is None else _object(one) for one in listed]
    if f.kind == "ip":
        return [None if one is None else _address(one) for one in listed]
    return listed


def _too_long(f: Field, array: pa.Array) -> list[bool] | None:
    """Which values may have terms that the library leaves out; None: none has."""
    if not f.is_text and f.kind != "binary":
        return None
    lengths = pc.binary_length(array)
    longest = pc.max(lengths).as_py()
    if longest is None or longest <= _SAFE_BYTES:
        return None
    long: list[bool] = pc.fill_null(pc.greater(lengths, _SAFE_BYTES), False).to_pylist()
    if f.kind != "text":
        return long
    return [is_long and _longest_stretch(one.as_py()) > _SAFE_BYTES for is_long, one in zip(long, array, strict=True)]


def _longest_stretch(text: str) -> int:
    """The longest stretch without blanks, in bytes; no term is longer."""
    return max(len(word.encode()) for word in _BLANKS.split(text))


def _address(text: str) -> str | None:
    """An IP address; None for what is none, which no query for addresses can find."""
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return None


def _object(value: Any) -> dict[str, Any] | None:
    """A value as a JSON object: arrays and scalars are its entry ``_``, so that they have a path.

    None for a string that is no JSON, or is nested too deep for any reader.
    """
    try:
        plain = _plain(json.loads(value) if isinstance(value, str) else value)
    except (ValueError, RecursionError):
        return None
    return plain if isinstance(plain, dict) else None if plain is None else {"_": plain}


def _paths(number: str, value: dict[str, Any]) -> set[str]:
    """The paths in a JSON object at or below which there is a value, as terms."""
    found: set[str] = set()
    waiting: list[tuple[tuple[str, ...], Any]] = [((number,), value)]
    while waiting:
        above, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(((*above, path_term(above[-1], name)), inner) for name, inner in one.items())
        elif isinstance(one, list):
            waiting.extend((above, inner) for inner in one)
        elif one is not None:
            found.update(above[1:])
    return found


def _plain(value: Any) -> Any:
    """What JSON has for a value: keys of maps become text, and so does what JSON does not know."""
    if isinstance(value, dict):
        return {_text(k): _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) and len(one) == 2 for one in value):  # a map, as Arrow gives it
            return {_text(k): _plain(v) for k, v in value if v is not None}
        return [_plain(one) for one in value if one is not None]
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else _text(value)
    return value.hex() if isinstance(value, bytes) else _text(value)


def _text(value: Any) -> str:
    """A string that UTF-8 can say: JSON may name halves of characters by their numbers."""
    return str(value).encode("utf-8", "replace").decode()
