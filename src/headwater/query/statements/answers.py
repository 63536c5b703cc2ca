"""Answers: what a statement that gives no rows of its own says it did."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from headwater.query.result import Result

__all__ = ["counts", "dropped", "nothing", "snake_case", "version_only"]


def counts(verb: str, values: Mapping[str, int | float | str], version: int | None = None) -> Result:
    """One row of counts, and the version of the table that holds what was done."""
    columns: dict[str, pa.Array] = {}
    for name, value in values.items():
        kind = pa.string() if isinstance(value, str) else pa.int64() if float(value).is_integer() else pa.float64()
        columns[name] = pa.array([value], kind)
    if version is not None:
        columns["version"] = pa.array([version], pa.int64())
    return Result.of(pa.table(columns), verb)


def version_only(verb: str, version: int) -> Result:
    """The version of the table that holds what was done."""
    return counts(verb, {}, version)


def nothing(verb: str) -> Result:
    """No columns and no rows: the statement did what it said."""
    return Result.of(pa.table({}), verb)


def dropped(verb: str, names: Sequence[str]) -> Result:
    """Nothing, where one thing was dropped; else the names of all, in the order in which they went."""
    return nothing(verb) if len(names) < 2 else Result.of(pa.table({"dropped": list(names)}), verb)


def snake_case(name: str) -> str:
    """Delta's name of a count, as a column.

    >>> snake_case("numAddedFiles")
    'num_added_files'
    """
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()
