"""What a fetch asks for, apart from its keys: the table, the columns, the options.

Most of it stands in the URL, and clients send the same URL again and again, so `Target` is made once for each and kept
by whoever answers. A JSON body may name columns and options too; what it names wins. Everything that is not known is
refused, with the nearest name that is: an option that is misspelt must not be ignored in silence.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import unquote_to_bytes

from headwater.base.errors import InputError, RequestError
from headwater.serving.projection import FetchOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OPTIONS", "Target", "check_table_name", "query_texts", "read_field", "read_target", "split_fetch"]

Orient = Literal["columns", "rows"]

OPTIONS = ("columns", "found", "status", "event_time", "missing", "min_frontier", "wait", "orient")
"""What the query of a fetch may have."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")
_FETCH = re.compile(rb"/(?:v1/tables|api/v1/table)/([A-Za-z0-9_.]{1,200})/fetch(?:\?([\x21-\x7e]*))?\Z")
_LONGEST_NAME = 200
_MOST_FIELDS = 64
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What is asked of one table; compared by identity, since equal URLs give the same one.

    Parameters
    ----------
    table : str
    columns : tuple of str, optional
        all columns that are not part of the key, without
    options : FetchOptions
    orient : "columns" or "rows"
        how JSON is laid out
    min_frontier : str, optional
        the frontier that the answer must have reached
    wait : float, optional
        how many seconds to wait for it
    murr : bool
        it came by Murr's path
    """

    table: str
    columns: tuple[str, ...] | None = None
    options: FetchOptions = field(default_factory=FetchOptions)
    orient: Orient = "columns"
    min_frontier: str | None = None
    wait: float | None = None
    murr: bool = False

    def with_fields(self, fields: Mapping[str, Any]) -> Target:
        """This target, with what a JSON body says instead."""
        changes = {name: _READERS[name](name, value) for name, value in fields.items() if name in _READERS}
        return _changed(self, changes) if changes else self


def check_table_name(name: str) -> str:
    """The name, if a table can have it: it may become part of a path.

    >>> check_table_name("../etc/passwd")
    Traceback (most recent call last):
    ...
    headwater.base.errors.InputError: error[E1004]: `../etc/passwd` cannot be the name of a table
      hint: use letters, digits and _ (not first a digit), with dots between the parts: sales.orders
    """
    if len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None or name.lower().startswith("_headwater"):
        raise InputError.bad_name(name[:_LONGEST_NAME])
    return name


def split_fetch(url: bytes) -> tuple[str, bytes, bool] | None:
    """Table, query and whether it is Murr's path, for the URL of a fetch that is written plainly; None for others.

    >>> split_fetch(b"/v1/tables/spend/fetch?columns=a"), split_fetch(b"/v1/tables/a%2e/fetch")
    (('spend', b'columns=a', False), None)
    """
    found = _FETCH.match(url)
    if found is None:
        return None
    return found[1].decode(), found[2] or b"", url.startswith(b"/api")


def read_target(table: str, query: bytes, *, murr: bool = False) -> Target:
    """What a URL asks for.

    >>> target = read_target("spend", b"columns=a,b&found=0")
    >>> target.columns, target.options.found
    (('a', 'b'), False)
    """
    check_table_name(table)
    return _changed(Target(table, murr=murr), read_query(query, OPTIONS))


def read_query(query: bytes, known: tuple[str, ...]) -> dict[str, Any]:
    """The parameters of a query by name, each read; those that are not known are refused."""
    return {name: _READERS[name](name, text) for name, text in query_texts(query, known).items()}


def query_texts(query: bytes, known: tuple[str, ...]) -> dict[str, Any]:
    """The parameters of a query by name, as text; ``columns`` is a list, since a name may have a comma in it.

    >>> query_texts(b"columns=a,b%2Cc&found=0", OPTIONS)
    {'columns': ['a', 'b,c'], 'found': '0'}
    """
    if not query:
        return {}
    found: dict[str, Any] = {}
    parts = query.split(b"&")
    if len(parts) > _MOST_FIELDS:
        raise RequestError.malformed("the query has too many parameters")
    for part in parts:
        raw_name, _, raw = part.partition(b"=")
        name = _unquoted(raw_name)
        if name not in known:
            raise RequestError.unknown_parameter(name, known)
        if name in found:
            raise RequestError.parameter(name, _unquoted(raw), "it once")
        found[name] = [_unquoted(one) for one in raw.split(b",") if one] if name == "columns" else _unquoted(raw)
    return found


def _unquoted(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise RequestError.malformed("the query is not UTF-8") from None


def read_field(name: str, value: Any) -> Any:
    """An option by its name, from the text of a query or a value of a JSON body."""
    return _READERS[name](name, value)


def _changed(target: Target, changes: Mapping[str, Any]) -> Target:
    options = {name: changes[name] for name in ("found", "status", "event_time", "missing") if name in changes}
    others = {name: value for name, value in changes.items() if name not in options}
    return replace(target, options=replace(target.options, **options) if options else target.options, **others)


# -- one reader for each option: from the text of a query, or from a value of a JSON body ------------------------------


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _FLAGS:
        return _FLAGS[value.lower()]
    raise RequestError.parameter(name, str(value), "1, 0, true or false")


def _columns(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RequestError.parameter(name, str(value), "names of columns")
    if len(set(value)) != len(value):
        raise RequestError.parameter(name, ", ".join(value), "each column once")
    return tuple(value) if value else None


def _missing(name: str, value: Any) -> str:
    if value not in ("null", "drop"):
        raise RequestError.parameter(name, str(value), "null or drop")
    return cast("str", value)


def _orient(name: str, value: Any) -> Orient:
    if value not in ("columns", "rows"):
        raise RequestError.parameter(name, str(value), "columns or rows")
    return cast("Orient", value)


def _text(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise RequestError.parameter(name, str(value), "a frontier, such as orders@42")
    return value or None


def _seconds(name: str, value: Any) -> float:
    try:
        seconds = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise RequestError.parameter(name, str(value), "a number of seconds, such as 0.5")
    return seconds


_READERS: dict[str, Any] = {
    "columns": _columns,
    "found": _flag,
    "status": _flag,
    "event_time": _flag,
    "missing": _missing,
    "min_frontier": _text,
    "wait": _seconds,
    "orient": _orient,
}
