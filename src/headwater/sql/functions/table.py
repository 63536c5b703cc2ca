"""The catalogue as a table for readers: ``docs/functions.md`` is made by `markdown`, and a test holds it to that."""

from __future__ import annotations

from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS

__all__ = ["markdown"]

_HEAD = """# Functions

Spark SQL functions that `engine="duckdb"` answers with Spark's values. Any other function is refused by name, with the
hint `engine="spark"`, where all of them run. This page is made from `headwater.sql.functions`.

| function | family | kind | engines | notes |
|---|---|---|---|---|
"""


def markdown() -> str:
    """The page, sorted by family and name."""
    functions = sorted((*FUNCTIONS.values(), *AGGREGATES.values()), key=lambda f: (f.family, f.name))
    rows = []
    for f in functions:
        name = f.name.replace("|", "\\|").removesuffix(" of") + (" (x FROM s)" if f.name.endswith(" of") else "")
        rows.append(f"| `{name}` | {f.family} | {f.kind} | duckdb, spark | {f.note} |\n")
    return _HEAD + "".join(rows)
