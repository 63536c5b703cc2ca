"""The Delta table that a folder or file lies in.

A part of a table's folder looks like files that belong to no table: ``trades/day=2024-01-31`` holds Parquet files. But
only the table's log says which of them are there, so whoever names a part is told of the table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from headwater.base.spark_text import quoted_name, quoted_text
from headwater.base.storage import Storage, open_storage
from headwater.lake.catalog import is_table
from headwater.timeseries.sources.hive import folder_values

__all__ = ["enclosing_table", "filter_for", "has_log"]

_LEVELS = 16


def has_log(storage: Storage) -> bool:
    """Whether a Delta log lies in a folder; a file is none."""
    local = storage.local_path("")
    return (local is None or os.path.isdir(local)) and is_table(storage)


def enclosing_table(location: str, options: Mapping[str, str] | None) -> str | None:
    """The folder of the nearest Delta table above a location, if there is one."""
    scheme, mark, rest = location.partition("://")
    path = rest if mark else os.path.abspath(location)
    for _ in range(_LEVELS):
        path = path.rstrip("/").rpartition("/")[0]
        if not path:
            return None
        folder = f"{scheme}{mark}{path}" if mark else path
        if has_log(open_storage(folder, options)):
            return folder
    return None


def filter_for(location: str, table: str) -> str | None:
    """The condition that a part's folders name, as SQL; None if they name none.

    >>> filter_for("/lake/trades/day=2024-01-31/k=it's", "/lake/trades")
    "`day` = '2024-01-31' AND `k` = 'it\\\\'s'"
    """
    inside = location.rstrip("/").partition(f"{os.path.basename(table)}/")[2]
    parts = []
    for name, text in folder_values(f"{inside}/").items():
        column = quoted_name(name)
        parts.append(f"{column} IS NULL" if text is None else f"{column} = {quoted_text(text)}")
    return " AND ".join(parts) or None
