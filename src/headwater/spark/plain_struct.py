"""Columns of plain types as a struct of Spark's, without Spark's parser.

``mapInArrow`` takes the names and types of its columns as text, too. A classic session has that text parsed in the JVM,
which loads the whole grammar of SQL first: about 0.4 CPU seconds in front of the first rows, for five columns that are
known here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["plain_struct"]


@cache
def plain_struct(columns: str) -> StructType:
    """The struct of columns that are written as ``name type, name type``; the types are int, long, string and binary.

    >>> plain_struct("bucket int, block binary").simpleString()
    'struct<bucket:int,block:binary>'
    """
    from pyspark.sql import types

    kinds = {
        "int": types.IntegerType(),
        "long": types.LongType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
    }
    pairs = [column.split() for column in columns.split(",")]
    return types.StructType([types.StructField(name, kinds[kind]) for name, kind in pairs])
