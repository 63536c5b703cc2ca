"""Columns of PySpark, of classic sessions and of Spark Connect: what they are called, and what they say as SQL text."""

from __future__ import annotations

from typing import Any, TypeGuard

from headwater.spark.column_text import refused

__all__ = ["column_names", "column_text", "is_column"]

_MODULES = ("pyspark.sql.classic.column", "pyspark.sql.connect.column")


def is_column(value: object) -> TypeGuard[Any]:
    """Is it a Column of PySpark? Known by its class, so that nobody who has none imports PySpark.

    >>> is_column("price > 10")
    False
    """
    return any(kind.__module__ in _MODULES and kind.__name__ == "Column" for kind in type(value).__mro__)


def column_text(column: Any) -> str:
    """What a Column says, as Spark SQL; its alias is left out.

    Raises
    ------
    UnsupportedError
        Part of it has no text: a Python function, a column of a DataFrame, a window (E3003).

    >>> from pyspark.sql.connect.functions import col, lit
    >>> column_text(col("price") * 2 > lit(10))
    '((`price` * 2) > 10)'
    """
    try:
        found: str = _reader(column).text_of(column)
    except RecursionError:
        raise refused("thousands of parts, one in the other,", "they are too deep to be read") from None
    return found


def column_names(column: Any) -> tuple[str, ...]:
    """The names that a Column gives itself; none if it is an expression without an alias.

    >>> from pyspark.sql.connect.functions import col
    >>> column_names(col("price").alias("paid")), column_names(col("price")), column_names(col("price") + 1)
    (('paid',), ('price',), ())
    """
    found: tuple[str, ...] = _reader(column).names_of(column)
    return found


def _reader(column: Any) -> Any:
    if hasattr(type(column), "_jc") or "_jc" in vars(column):
        from headwater.spark import column_classic

        return column_classic
    from headwater.spark import column_connect

    return column_connect
