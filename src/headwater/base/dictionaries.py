"""Columns as one dictionary: the values that occur, and for each row the number of its own.

Arrow encodes a column chunk by chunk, and gives chunks, or one array, or none, as it comes; who works on the numbers
wants one array.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["encoded"]


def encoded(column: pa.ChunkedArray | pa.Array) -> pa.DictionaryArray:
    """A column with one dictionary; columns that have dictionaries already keep their values.

    >>> found = encoded(pa.chunked_array([["b", None], ["a", "b"]]))
    >>> found.dictionary.to_pylist(), found.indices.to_pylist()
    (['b', 'a'], [0, None, 1, 0])
    """
    made = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    if not isinstance(made, pa.ChunkedArray):
        return made
    if not made.num_chunks:
        # pa.array([], type) cannot make dictionaries of all types.
        nothing = pa.array([], made.type.value_type)
        return pa.DictionaryArray.from_arrays(pa.array([], made.type.index_type), nothing)
    one = made.unify_dictionaries().combine_chunks()
    return one.chunk(0) if isinstance(one, pa.ChunkedArray) else one
