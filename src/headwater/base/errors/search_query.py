"""Search queries that cannot be read, or that are larger than the search room takes."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.input import InputError

__all__ = ["SearchQueryError"]


class SearchQueryError(InputError):
    """A search query that does not parse, or that exceeds a limit."""

    @classmethod
    def unreadable(cls, why: str, hint: str) -> Self:
        return cls("E1801", f"cannot read the search query: {why}", hint=hint)

    @classmethod
    def too_long(cls, length: int, limit: int) -> Self:
        return cls(
            "E1802",
            f"the search query has {length:,} characters, more than {limit:,}",
            hint="search in several steps, or filter by a column instead of listing many words",
        )

    @classmethod
    def too_deep(cls, limit: int) -> Self:
        return cls(
            "E1803",
            f"the search query is nested more than {limit:,} levels deep",
            hint="remove parentheses: `a OR b OR c` needs none, and `field: IN [a b c]` lists many values",
        )

    @classmethod
    def too_many_clauses(cls, limit: int) -> Self:
        return cls(
            "E1804",
            f"the search query has more than {limit:,} clauses",
            hint="list many values in one clause: `field: IN [a b c]`",
        )
