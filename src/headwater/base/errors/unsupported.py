"""What is asked is known, and refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.root import HeadwaterError

__all__ = ["UnsupportedError"]


class UnsupportedError(HeadwaterError):
    """We know what is asked and refuse it, with the reason."""

    def about(self, word: str) -> Self:
        """This error, with the word of the text that it is about, for whoever has the text."""
        return self._about(word)

    @classmethod
    def native(cls, engine: str) -> Self:
        return cls(
            "E3005",
            f"{engine} has no dialect of its own here",
            hint='leave out dialect="native": Spark SQL is the dialect',
        )

    @classmethod
    def writer_feature(cls, features: Sequence[str], where: str) -> Self:
        return cls(
            "E3001",
            f"the table needs writer features this version cannot honour: {', '.join(features)}",
            where=where,
            hint="nothing was written; write it with the engine that turned them on, or drop the feature there",
        )

    @classmethod
    def reader_feature(cls, features: Sequence[str], where: str) -> Self:
        return cls(
            "E3002",
            f"the table needs reader features this version cannot honour: {', '.join(features)}",
            where=where,
            hint="read it with the engine that turned them on, or drop the feature there",
        )

    @classmethod
    def operation(cls, what: str, why: str, hint: str) -> Self:
        return cls("E3003", f"{what}: {why}", hint=hint)

    @classmethod
    def not_maintained(cls, text: str, what: str, why: str, hint: str, position: int | None = None) -> Self:
        return cls("E3007", f"{what} cannot be kept up to date: {why}", hint=hint).placed_at(text, position)

    @classmethod
    def column_type(cls, column: str, kind: str, hint: str) -> Self:
        return cls("E3004", f"column `{column}` has type {kind}, which cannot be handled here", hint=hint)

    @classmethod
    def kind(cls, name: str, known: Sequence[str]) -> Self:
        return cls(
            "E3008",
            f"this version of Headwater does not know derived artefacts of the kind `{name}`",
            hint=f"it knows {', '.join(known)}; install the version that made it",
        )

    @classmethod
    def recompute(cls, name: str, why: str) -> Self:
        return cls(
            "E3006",
            f"the view `{name}` would have to be computed anew, which its policy `strict` forbids: {why}",
            hint='refresh(full=True) does it this once; policy="auto" does it whenever it has to',
        )
