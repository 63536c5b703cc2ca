"""A query was stopped."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.root import HeadwaterError

__all__ = ["CancelledError"]


class CancelledError(HeadwaterError):
    """A query was stopped before it had given all its rows."""

    @classmethod
    def query(cls, statement: str) -> Self:
        return cls(
            "E1402", f"the {statement} was cancelled", hint="run it again; rows that were read before may be only some"
        )
