"""Search queries that cannot be read, or that are larger than the search room takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.action import Action
from headwater.base.errors.input import InputError
from headwater.base.errors.wording import did_you_mean, list_some

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

    @classmethod
    def refused(cls, what: str, why: str) -> Self:
        return cls("E1805", f"{what} failed: {why}", hint="ask for less, or write the query in another way")

    @classmethod
    def broken(cls, what: str, why: str) -> Self:
        return cls(
            "E1806",
            f"{what} failed inside the search library: {why}",
            hint="nothing was changed; refresh the index with full=True, and report the query if it fails again",
        )

    @classmethod
    def not_indexed(cls, field: str, indexed: Sequence[str]) -> Self:
        near = did_you_mean(field, indexed)
        asked = f"did you mean `{near}`? " if near else ""
        return cls("E1807", f"the index has no field `{field}`", hint=f"{asked}fields: {list_some(list(indexed))}")

    @classmethod
    def bad_value(cls, field: str, kind: str, value: str, expected: str) -> Self:
        return cls("E1808", f"`{value}` is no value of the field `{field}`, which is {kind}", hint=f"write {expected}")

    @classmethod
    def not_possible(cls, what: str, field: str, why: str, hint: str) -> Self:
        return cls("E1809", f"{what} cannot be asked of the field `{field}`: {why}", hint=hint)

    @classmethod
    def no_index(cls, table: str, where: str) -> Self:
        return cls(
            "E1810",
            f"`{table}` has no search index",
            where=where,
            actions=[Action("create_index", table=table)],
        )
