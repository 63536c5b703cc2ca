"""Oracles: the slow, obvious answers that the fast ones are compared with.

`row_counts` counts equal rows one by one in Python, knowing nothing of `headwater.base.rowkey`; property tests hold
the vectorised code against it. `assert_same_rows` is for tests of everything else: it compares two tables as multisets
of rows, with the vectorised code, and shows which rows are missing and which are too many.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.change import ChangeBatch, as_table, show_value

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["assert_same_rows", "row_counts", "same_value"]

_SHOWN = 10


def assert_same_rows(actual: object, expected: object, *, where: str = "") -> None:
    """Fail unless both hold the same rows, equally often, in whatever order; with a readable difference.

    Parameters
    ----------
    actual, expected : Arrow tables, frames, or anything with an Arrow stream
        columns are matched by name; string, large_string and dictionary encodings of a type are the same
    where : str, optional
        said first in the message

    Examples
    --------
    >>> assert_same_rows([{"id": 1}, {"id": 2}], [{"id": 2}, {"id": 1}])
    >>> assert_same_rows([{"id": 1}, {"id": 2}], [{"id": 2}, {"id": 3}])
    Traceback (most recent call last):
    ...
    AssertionError: the rows differ: 1 missing, 1 too many (2 rows, 2 expected)
      missing  1x {'id': 3}
      too many 1x {'id': 1}
    """
    have, want = as_table(actual), as_table(expected)
    difference = ChangeBatch.diff(want, have)
    if not difference.num_rows:
        return
    lines: dict[bool, list[str]] = {True: [], False: []}
    counts = {True: 0, False: 0}
    for position, weight in enumerate(difference.weights.tolist()):
        counts[weight > 0] += abs(weight)
        if len(lines[weight > 0]) < _SHOWN:
            word = "too many" if weight > 0 else "missing "
            lines[weight > 0].append(f"  {word} {abs(weight)}x {_shown(difference.rows.slice(position, 1))}")
    title = (
        f"the rows differ: {counts[False]} missing, {counts[True]} too many "
        f"({have.num_rows} rows, {want.num_rows} expected)"
    )
    raise AssertionError("\n".join([f"{where}: {title}" if where else title, *lines[False], *lines[True]]))


def row_counts(table: pa.Table) -> Counter[Hashable]:
    """How often each row occurs, by comparing values one at a time: the oracle of row equality.

    >>> import pyarrow as pa
    >>> sorted(row_counts(pa.table({"x": [0.0, -0.0, 0.0]})).values())
    [1, 2]
    """
    columns = [[same_value(value) for value in column] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})


def same_value(value: pa.Scalar) -> Hashable:
    """A Python value that equals that of another scalar of the type iff the two are bit for bit the same."""
    kind = value.type
    if not value.is_valid:
        return None
    if isinstance(kind, pa.BaseExtensionType):
        return same_value(value.value)
    if pa.types.is_dictionary(kind):
        return same_value(value.dictionary[value.index.as_py()])
    if pa.types.is_struct(kind):
        return tuple(same_value(value[position]) for position in range(kind.num_fields))
    if pa.types.is_nested(kind):  # lists of all kinds, and maps as lists of entries
        return tuple(same_value(item) for item in value.values)
    if pa.types.is_floating(kind):
        number = float(value.as_py())
        return "nan" if math.isnan(number) else struct.pack("<d", number)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return int(value.value)  # dates and times beyond Python's years have no datetime
    plain: Hashable = value.as_py()
    return plain


def _shown(row: pa.Table) -> str:
    try:
        return str(row.to_pylist()[0])
    except (ValueError, OverflowError):  # a timestamp beyond Python's years
        return str({name: show_value(row.column(position)[0]) for position, name in enumerate(row.schema.names)})
