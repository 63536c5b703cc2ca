"""The sources of a dbt project as a project here declares them, and what of them is not taken.

A source keeps its ``identifier``, since that is the name of the table, its description, its freshness and the types of
its columns. Everything else that is said of it is listed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any

__all__ = ["INHERITED", "left_out", "quoted", "source_lines", "source_names"]

_UNITS = {"minute": 60, "hour": 3600, "day": 86_400}
_TAKEN_OF_TABLE = {"name", "identifier", "description", "columns", "tests", "data_tests", "freshness", "config"}
_TAKEN_OF_COLUMN = {"name", "data_type", "tests", "data_tests"}
_TAKEN_OF_CONFIG = {"freshness", "enabled"}
INHERITED = (
    "schema",
    "database",
    "loader",
    "loaded_at_field",
    "loaded_at_query",
    "quoting",
    "tags",
    "meta",
    "overrides",
)
"""What a source says of all its tables."""
_WHY = {
    "schema": "a lake has one set of names",
    "database": "a lake has one set of names",
    "loader": "nothing here depends on who loads a table",
    "loaded_at_field": "the age of a table is that of its newest commit",
    "loaded_at_query": "the age of a table is that of its newest commit",
    "quoting": "names are quoted where they need it",
}


def source_names(
    sources: Mapping[tuple[str, str], Mapping[str, Any]], models: Collection[str]
) -> dict[tuple[str, str], str]:
    """What each source is called in the lake: by its table, or as ``source.table`` where that name is taken.

    >>> source_names({("raw", "orders"): {"identifier": "orders_v2"}, ("raw", "spend"): {}}, ["spend"])
    {('raw', 'orders'): 'orders_v2', ('raw', 'spend'): 'raw.spend'}
    """
    tables = {key: str(found.get("identifier") or key[1]) for key, found in sources.items()}
    taken = [name.lower() for name in (*tables.values(), *models)]
    return {key: name if taken.count(name.lower()) == 1 else f"{key[0]}.{name}" for key, name in tables.items()}


def source_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The settings of a source, as lines of ``headwater.yaml``."""
    if found.get("description"):
        yield f"    description: {quoted(' '.join(str(found['description']).split()))}"
    age = _age(found)
    if age is not None:
        yield f"    freshness: {int(age.total_seconds())} s"
    types = {str(c["name"]): str(c["data_type"]) for c in _columns(found) if c.get("data_type")}
    if types:
        yield "    columns:"
        yield from (f"      {quoted(column)}: {quoted(kind)}" for column, kind in types.items())


def left_out(found: Mapping[str, Any], shown: str) -> Iterator[tuple[str, str]]:
    """What is said of a source's table and not taken: what it is, and why."""
    for key in sorted(set(found) - _TAKEN_OF_TABLE):
        if found[key] not in (None, "", [], {}):
            yield f"{shown}: {key}", _WHY.get(key, "no such setting is known here")
    for key in sorted(set(_mapping(found.get("config"))) - _TAKEN_OF_CONFIG):
        yield f"{shown}: config {key}", _WHY.get(key, "no such setting is known here")
    lost = {key for column in _columns(found) for key in column if key not in _TAKEN_OF_COLUMN and column[key]}
    for key in sorted(lost):
        yield f"{shown}: {key} of its columns", "a source has names and types of columns"
    freshness = _freshness(found)
    if _limit(found) and _age(found) is None:
        yield f"{shown}: freshness", f"its limit is {dict(_limit(found))!r}"
    if freshness.get("error_after") and freshness.get("warn_after"):
        yield f"{shown}: freshness warn_after", "a source has one limit: that of error_after"
    if freshness.get("filter"):
        yield f"{shown}: freshness filter", _WHY["loaded_at_field"]


def _age(found: Mapping[str, Any]) -> timedelta | None:
    """How old a source may be: the limit of its ``freshness``."""
    limit = _limit(found)
    unit, count = _UNITS.get(str(limit.get("period"))), limit.get("count")
    return timedelta(seconds=unit * count) if unit is not None and isinstance(count, int) else None


def _limit(found: Mapping[str, Any]) -> Mapping[str, Any]:
    freshness = _freshness(found)
    return _mapping(freshness.get("error_after")) or _mapping(freshness.get("warn_after"))


def _freshness(found: Mapping[str, Any]) -> Mapping[str, Any]:
    config = _mapping(found.get("config"))
    return _mapping(config["freshness"] if "freshness" in config else found.get("freshness"))


def _columns(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    columns = found.get("columns")
    return [one for one in columns if isinstance(one, dict)] if isinstance(columns, list) else []


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def quoted(value: Any) -> str:
    """A value as YAML that holds nothing to be replaced."""
    return json.dumps(value, ensure_ascii=False).replace("${", "$${")
