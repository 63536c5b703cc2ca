"""Columns of PySpark as the SQL text that says the same.

The problem: whoever knows PySpark writes ``F.col("price") * 2 > F.lit(10)``, an object that a session made, and Spark
has no way back from it to a text. The idea: such an object is a small tree of names, constants and calls which nobody
has resolved yet. A text with the same names, constants and calls is resolved by the same rules, so it means the same
wherever Spark SQL is understood. The trees are read by `column_classic` and `column_connect`; here is how each of their
parts is spelled.

Invariants:
1. A constant has the type that Spark gives it: ``10`` is an int, ``10L`` a bigint, ``1.5D`` a double, and a moment says
   its zone.
2. Whatever is not one token stands in brackets, so that nothing depends on which operator binds more.
3. What has no text (a Python function, a column of some DataFrame, a window of its own) is refused with what to write
   instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from headwater.base.errors import UnsupportedError
from headwater.base.spark_text import quoted_name, quoted_text

__all__ = [
    "aliased",
    "call",
    "case",
    "cast",
    "constant",
    "duration",
    "element",
    "function_of",
    "given",
    "lambda_of",
    "name",
    "of_a_frame",
    "refused",
    "windowed",
]

AS_TEXT = 'write the expression as SQL text, like "price * 2 > 10"'
_BINARY = {
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "%": "%",
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "and": "AND",
    "or": "OR",
    "&": "&",
    "|": "|",
    "^": "^",
}
_UNARY = {"!": "NOT ", "not": "NOT ", "~": "~"}
# No number is written like this in SQL: what gives it.
_NOT_FINITE = {"nan": "sqrt(-1D)", "inf": "(1e308D * 10D)", "-inf": "(-1e308D * 10D)"}
_UNITS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_INTERVAL = re.compile(r"\s*INTERVAL\s+('[^']*'|[+-]?\d+)\s+\w+\s*", re.IGNORECASE)
_PATTERNS = {"like": "LIKE", "ilike": "ILIKE"}


def name(parts: Iterable[str]) -> str:
    """A column, or a field of one.

    >>> name(["a", "b c"])
    '`a`.`b c`'
    """
    return ".".join(map(quoted_name, parts))


def constant(value: Any, kind: str | None = None) -> str:
    """A constant; ``kind`` is its type in SQL where the value does not say it.

    >>> constant(10), constant(10, "bigint"), constant(1.5), constant(Decimal("1.50")), constant("it's")
    ('10', '10L', '1.5D', '1.50BD', "'it\\\\'s'")
    >>> constant(b"ab"), constant(None, "int"), constant(float("nan"))
    ("X'6162'", 'CAST(NULL AS int)', 'sqrt(-1D)')
    """
    if value is None:
        return "NULL" if kind in (None, "void") else f"CAST(NULL AS {kind})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if kind in (None, "int"):
            return str(value)
        return f"{value}L" if kind == "bigint" else f"CAST({value} AS {kind})"
    if isinstance(value, float):
        text = f"{value!r}D" if math.isfinite(value) else _NOT_FINITE[str(value)]
        return text if kind in (None, "double") else f"CAST({text} AS {kind})"
    if isinstance(value, Decimal):
        text = f"{value:f}BD"
        return text if kind is None else f"CAST({text} AS {kind})"
    if isinstance(value, str):
        return quoted_text(value)
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex().upper()}'"
    raise refused(f"a constant of {type(value).__name__}", "it has no form in SQL")


def duration(length: timedelta) -> str:
    """A length of time, in the largest unit of which it is so many.

    >>> duration(timedelta(minutes=90)), duration(timedelta(hours=1, microseconds=5))
    ("INTERVAL '90' MINUTE", "INTERVAL '3600.000005' SECOND")
    """
    micros = length // timedelta(microseconds=1)
    for unit, size in _UNITS.items():
        if micros % size == 0:
            return f"INTERVAL '{micros // size}' {unit}"
    sign = "-" if micros < 0 else ""
    return f"INTERVAL '{sign}{abs(micros) // 1_000_000}.{abs(micros) % 1_000_000:06d}' SECOND"


def given(sql: str) -> str:
    """A text that is a part already.

    >>> given("a + 1"), given("INTERVAL '1' DAY")
    ('(a + 1)', "INTERVAL '1' DAY")
    """
    return sql if _INTERVAL.fullmatch(sql) else f"({sql})"


def call(function: str, arguments: Sequence[str], *, distinct: bool = False) -> str:
    """A call, of which operators are ones by other names.

    >>> call(">", ["`a`", "1"]), call("in", ["`a`", "1", "2"]), call("count", ["`a`"], distinct=True)
    ('(`a` > 1)', '(`a` IN (1, 2))', 'count(DISTINCT `a`)')
    """
    word = function.lower()
    if word in _BINARY and len(arguments) == 2:
        return f"({arguments[0]} {_BINARY[word]} {arguments[1]})"
    if word in _UNARY and len(arguments) == 1:
        return f"({_UNARY[word]}{arguments[0]})"
    if word in _PATTERNS and len(arguments) in (2, 3):
        escape = f" ESCAPE {arguments[2]}" if len(arguments) == 3 else ""
        return f"({arguments[0]} {_PATTERNS[word]} {arguments[1]}{escape})"
    if word == "in":
        # Nothing is among no values, not even null.
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))" if len(arguments) > 1 else "false"
    if word == "when":
        pairs = list(zip(arguments[0::2], arguments[1::2], strict=False))
        return case(pairs, arguments[-1] if len(arguments) % 2 else None)
    if not re.fullmatch(r"\w+(\.\w+)*", function):
        function = name([function])
    return f"{function}({'DISTINCT ' if distinct else ''}{', '.join(arguments)})"


def case(branches: Iterable[tuple[str, str]], otherwise: str | None) -> str:
    """``when(…).otherwise(…)``.

    >>> case([("a", "1")], "2")
    'CASE WHEN a THEN 1 ELSE 2 END'
    """
    parts = [f"WHEN {condition} THEN {value}" for condition, value in branches]
    return " ".join(["CASE", *parts, *([] if otherwise is None else [f"ELSE {otherwise}"]), "END"])


def cast(value: str, kind: str, mode: str | None) -> str:
    """A cast; ``mode`` is how it treats what cannot be cast: as the session does, or ``try``, ``ansi``, ``legacy``.

    >>> cast("`a`", "bigint", None), cast("`a`", "int", "try")
    ('CAST(`a` AS bigint)', 'TRY_CAST(`a` AS int)')
    """
    if mode == "legacy":
        raise refused("a cast that is not ANSI", "text has none that always gives null", "use try_cast()")
    return f"{'TRY_CAST' if mode == 'try' else 'CAST'}({value} AS {kind})"


def lambda_of(names: Sequence[str], body: str) -> str:
    """A function that is an argument.

    >>> lambda_of(["x", "y"], "(`x` + `y`)")
    '(`x`, `y`) -> (`x` + `y`)'
    """
    variables = ", ".join(name([one]) for one in names)
    return f"{variables if len(names) == 1 else f'({variables})'} -> {body}"


def element(value: str, key: str) -> str:
    """A field of a struct, an element of an array, a value of a map.

    >>> element("`a`", "'k'")
    "`a`['k']"
    """
    return f"{value if value.startswith('`') else f'({value})'}[{key}]"


def aliased(value: str, names: Sequence[str]) -> str:
    """A name that a part has inside: a field of ``struct(…)``."""
    return f"{value} AS {name(names[:1])}"


def refused(what: str, why: str, hint: str = AS_TEXT) -> UnsupportedError:
    """The error of a part that has no text."""
    return UnsupportedError.operation(f"{what} in a Column", why, hint)


def function_of(shown: str) -> UnsupportedError:
    """The error of a Python function."""
    hint = (
        "use with_columns(name=lambda batch: …), which gives the function whole columns; then filter or "
        "aggregate by that name"
    )
    return refused(shown, "a Python function would be called for rows one by one", hint)


def of_a_frame(column: str) -> UnsupportedError:
    """The error of a column that a DataFrame gave."""
    why = "it belongs to that DataFrame, and a stream is another one"
    return refused(f"the column `{column}` of a DataFrame", why, f'name it: F.col("{column}")')


def windowed() -> UnsupportedError:
    """The error of an aggregate with a window."""
    hint = "give the aggregate without over(): to rolling(…), cumulative(…) or window(…).agg(…)"
    return refused("over()", "the window of an aggregate is a stream's own: its series, by its time", hint)
