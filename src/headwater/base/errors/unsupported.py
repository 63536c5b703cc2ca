"""What is asked is known, and refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.action import Action, Hint
from headwater.base.errors.root import HeadwaterError
from headwater.base.kinds import VIEW, KindWords

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
            actions=[Action("spark_dialect")],
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
    def erasure(cls, table: str, reasons: Sequence[str]) -> Self:
        said = "; ".join(reasons)
        return cls(
            "E3010",
            f"rows of `{table}` cannot be erased everywhere: {said}",
            hint="nothing was done; allow_outside leaves out what lies elsewhere, and the certificate says so",
        )._about(table)

    @classmethod
    def reader_feature(cls, features: Sequence[str], where: str) -> Self:
        return cls(
            "E3002",
            f"the table needs reader features this version cannot honour: {', '.join(features)}",
            where=where,
            hint="read it with the engine that turned them on, or drop the feature there",
        )

    @classmethod
    def operation(cls, what: str, why: str, hint: Hint) -> Self:
        return cls("E3003", f"{what}: {why}", hint=hint)

    @classmethod
    def not_maintained(cls, text: str, what: str, why: str, hint: Hint, position: int | None = None) -> Self:
        return cls("E3007", f"{what} cannot be kept up to date: {why}", hint=hint).placed_at(text, position)

    @classmethod
    def column_type(cls, column: str, kind: str, hint: Hint) -> Self:
        return cls("E3004", f"column `{column}` has type {kind}, which cannot be handled here", hint=hint)

    @classmethod
    def kind(cls, name: str, known: Sequence[str]) -> Self:
        return cls(
            "E3008",
            f"this version of Headwater does not know derived artefacts of the kind `{name}`",
            hint=f"it knows {', '.join(known)}; install the version that made it",
        )

    @classmethod
    def declaration(cls, name: str, kind: str) -> Self:
        return cls(
            "E3009",
            f"`{name}` cannot be declared in a project: artefacts of the kind `{kind}` have no declaration",
            hint="define it by its method of the lake",
        )

    @classmethod
    def recompute(cls, name: str, why: str, kind: KindWords = VIEW) -> Self:
        later = Action("auto_policy_of", also=True, name=name) if kind.by_function else Action("auto_policy", also=True)
        return cls(
            "E3006",
            f"the {kind.it} `{name}` would have to be computed anew, which its policy `strict` forbids: {why}",
            actions=[Action("recompute_once", name=name, kind=kind), later],
        )
