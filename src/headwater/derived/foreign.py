"""Has somebody else changed the rows of an artefact's table since its last refresh?

The log says it, commit by commit. Where an erasure has deleted entries (`headwater.lake.erasure`), the version that it
marked says since when the rows are the same.
"""

from __future__ import annotations

from headwater.base.errors import NotFoundError
from headwater.lake import erasure, log
from headwater.lake.snapshot import Snapshot

__all__ = ["changed_since"]


def changed_since(base: Snapshot, published: int) -> str | None:
    """What others have done to the rows after version ``published``, in words; None if nothing, or never published."""
    found: str | None = None
    version = base.version
    while published and version > published:
        try:
            commit = log.read_commit(base.storage, version, 0)
        except NotFoundError:
            return f"what version {version} did is not known any more"
        if commit.changes_data:
            found = f"version {version} ({commit.operation}) changed its rows"
        version = min(version - 1, erasure.rows_since(commit))
    return found
