"""How long a query engine took to compute a view, kept from one process to the next.

A refresh writes what it measured into its commit (`record`). `verify` measures, too, and commits nothing: without this
file the next process would have to guess again whether a query is quicker than following a large change. It is
``query_time.json`` in the folder of the view's state, version 1::

    {"version": 1, "query": <SHA-256 of the definition>, "rows": <rows of the sources>, "seconds": <seconds>}

Nothing depends on it but an estimate: it may be missing, old or unreadable, and a lake that cannot be written does
without.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress

from headwater.base.errors import HeadwaterError
from headwater.base.storage import Storage

__all__ = ["recall", "remember"]

_NAME = "query_time.json"
_VERSION = 1


def remember(root: Storage, view: str, sql: str, rows: int, seconds: float) -> None:
    """Keep what a query took."""
    value = {"version": _VERSION, "query": _digest(sql), "rows": rows, "seconds": round(seconds, 6)}
    with suppress(HeadwaterError, OSError):
        root.put(_path(view), json.dumps(value).encode())


def recall(root: Storage, view: str, sql: str) -> tuple[int, float] | None:
    """The rows and seconds of the last time that this query was measured; None if that is not known."""
    with suppress(HeadwaterError, OSError, ValueError, KeyError, TypeError):
        found = json.loads(root.get(_path(view)))
        if (found["version"], found["query"]) == (_VERSION, _digest(sql)):
            return int(found["rows"]), float(found["seconds"])
    return None


def _digest(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()


def _path(view: str) -> str:
    return f"_headwater/views/{view}/{_NAME}"
