"""The catalogue as a table for readers: ``docs/functions.md`` is made by `markdown`, and a test holds it to that."""

from __future__ import annotations

from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS
from headwater.sql.functions.math import INEXACT, INEXACT_UNITS

__all__ = ["markdown"]

_MEASURED = """
## How much of Spark SQL that is

Spark documents its functions with examples. These are the examples that Spark itself runs, asked here on DuckDB; right
is an answer of the same types and rows. `make bench ARGS=functions` asks them again and lists what has no answer;
a test holds the table.

"""

_HEAD = """# Functions

Spark SQL functions that are answered here with Spark's values: the scalar ones in conditions, SET values, CHECK rules
and generated columns, all of them in the typed plans of `headwater.sql.query`. Any other function is refused by name.
This page is made from `headwater.sql.functions`.

Java and C compute some functions of doubles each in their own way. One rule for all of them: the value may differ from
the JVM's by at most {units} units in the last place. They are: {inexact}.

| function | family | kind | engines | notes |
|---|---|---|---|---|
"""


def markdown(measured: str) -> str:
    """The page, sorted by family and name; ``measured`` is the table of `headwater.testing.spark_examples.figures`."""
    functions = sorted((*FUNCTIONS.values(), *AGGREGATES.values()), key=lambda f: (f.family, f.name))
    rows = []
    for f in functions:
        name = f.name.replace("|", "\\|").removesuffix(" of") + (" (x FROM s)" if f.name.endswith(" of") else "")
        rows.append(f"| `{name}` | {f.family} | {f.kind} | duckdb, spark | {f.note} |\n")
    inexact = ", ".join(f"`{name}`" for name in sorted(INEXACT))
    return _HEAD.format(units=INEXACT_UNITS, inexact=inexact) + "".join(rows) + _MEASURED + measured
