"""Columns, with Spark's names of their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt.adapters.base.column import Column

__all__ = ["HeadwaterColumn"]

_INTEGERS = {"tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long"}


@dataclass
class HeadwaterColumn(Column):  # type: ignore[misc]
    """A column of a table or view."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {"TEXT": "string", "STRING": "string", "INTEGER": "int", "FLOAT": "double"}

    @property
    def quoted(self) -> str:
        """Its name in SQL."""
        return f"`{self.column}`"

    @property
    def data_type(self) -> str:
        """Its type in SQL."""
        return str(self.dtype)

    def is_string(self) -> bool:
        """Whether it holds text."""
        return str(self.dtype).lower() == "string"

    def is_integer(self) -> bool:
        """Whether it holds whole numbers."""
        return self.dtype.lower() in _INTEGERS

    def is_float(self) -> bool:
        """Whether it holds floating-point numbers."""
        return self.dtype.lower() in {"float", "double", "real"}

    def is_numeric(self) -> bool:
        """Whether it holds decimals."""
        return str(self.dtype).lower().startswith(("decimal", "numeric"))

    @classmethod
    def string_type(cls, size: int) -> str:
        """The type of text: it has no length."""
        return "string"

    def can_expand_to(self, other_column: Column) -> bool:
        """Whether a column has to be widened: text has no length."""
        return False
