"""Data breaks a rule of the table."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.action import Action
from headwater.base.errors.root import HeadwaterError
from headwater.base.errors.wording import top_level

__all__ = ["ConstraintError"]


class ConstraintError(HeadwaterError, ValueError):
    """Data breaks a rule of the table; nothing was written."""

    @classmethod
    def not_null(cls, column: str, rows: int, where: str) -> Self:
        return cls(
            "E2001",
            f"column `{column}` is NOT NULL, but {rows} row(s) have none",
            where=where,
            hint="nothing was written; fill the values",
            actions=[Action("drop_not_null", column=top_level(column))],
        )

    @classmethod
    def check(cls, name: str, expression: str, rows: int, where: str, *, adding: bool = False) -> Self:
        """Rows break a condition: new ones that of the table, or, while it is being added, those that are there."""
        made = cls("E2002", f"{rows} row(s) break the constraint `{name}`: {expression}", where=where)
        if adding:
            return made.advise("nothing was changed; mend those rows first, or loosen the condition")
        return made.advise("nothing was written; mend the rows", Action("drop_constraint", constraint=name))

    @classmethod
    def outside(cls, expression: str, rows: int, where: str) -> Self:
        return cls(
            "E2004",
            f"{rows} row(s) lie outside the condition of the overwrite: {expression}",
            where=where,
            hint="nothing was written; leave those rows out, or widen the condition so that it covers them",
        )

    @classmethod
    def generated(cls, column: str, expression: str, rows: int, where: str) -> Self:
        return cls(
            "E2003",
            f"{rows} row(s) give `{column}` another value than its definition: {expression}",
            where=where,
            hint="nothing was written; leave the column out, and it is computed",
        )

    @classmethod
    def absent_rows(cls, rows: int, first: str) -> Self:
        return cls(
            "E2101",
            f"{rows} row(s) to delete are not in the table, the first: {first}",
            hint="the change belongs to another version of the table; nothing was changed",
        )

    @classmethod
    def duplicate_key(cls, table: str, key: str) -> Self:
        return cls(
            "E2103",
            f"`{table}` would have two rows with the key {key}",
            hint="nothing was changed; upsert the row, or delete the other one first",
        )

    @classmethod
    def missing_row(cls, table: str, key: str) -> Self:
        return cls(
            "E2104",
            f"a row to delete is not in `{table}`, its key is {key}",
            hint="nothing was changed; delete by the key alone, or give the row as it is",
        )

    @classmethod
    def weight_overflow(cls) -> Self:
        return cls(
            "E2102",
            "the weight of a row does not fit 64 bits",
            actions=[Action("consolidate")],
        )
