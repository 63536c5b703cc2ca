"""A folder of a date that cannot be served as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.input import InputError
from headwater.base.errors.wording import candidates_hint

__all__ = ["PartitionError"]

_KEPT = "what was served before is served on"


class PartitionError(InputError):
    """A folder of a date that cannot be served as it is."""

    @classmethod
    def none(cls, location: str, seen: Sequence[str]) -> Self:
        """``seen`` says what was found instead, each in a few words."""
        found = f": {'; '.join(seen)}" if seen else ": there are no folders named by dates"
        return cls(
            "E1730",
            f"there is nothing to serve{found}",
            where=location,
            hint="write Parquet files to a folder named YYYY-MM-DD, and then the file `_SUCCESS` beside them",
        )

    @classmethod
    def missing_column(cls, column: str, known: Sequence[str], where: str) -> Self:
        hint = f"{_KEPT}; {candidates_hint(column, known, 'columns')}"
        return cls("E1731", f"there is no column `{column}`", where=where, hint=hint)._about(column)

    @classmethod
    def other_type(cls, column: str, have: str, want: str, where: str) -> Self:
        hint = f"{_KEPT}; write it as {want}, or declare it as {have}"
        return cls("E1732", f"column `{column}` is {have}, and not {want}", where=where, hint=hint)._about(column)

    @classmethod
    def nulls(cls, column: str, where: str, *, key: bool = False) -> Self:
        what = "is a part of the key" if key else "is declared without nulls"
        return cls(
            "E1733",
            f"column `{column}` {what}, and a value of it is null",
            where=where,
            hint=f"{_KEPT}; write a value, or leave such rows out",
        )._about(column)

    @classmethod
    def unreadable(cls, why: str, where: str) -> Self:
        return cls("E1734", why, where=where, hint=f"{_KEPT}; write the folder again, `_SUCCESS` last")

    @classmethod
    def gone(cls, partition: str, newest: str | None, location: str) -> Self:
        now = f", and the newest one is {newest}" if newest else ""
        return cls(
            "E1735",
            f"the folder {partition}, which is served, is gone{now}",
            where=location,
            hint="it is served on; write it again, or a later one",
        )

    @classmethod
    def changed(cls, partition: str, location: str) -> Self:
        return cls(
            "E1736",
            f"the folder {partition} was changed while it was read",
            where=location,
            hint=f"{_KEPT}, and it will be read again; write `_SUCCESS` after everything else",
        )
