"""Validation: whether the files of a partition are what the table declares.

Declared columns have to be there, with the declared type, and without nulls where that is declared; columns of the key
are never null. A type may come in another form that is stored as the same (a dictionary, a large string). ``timestamp``
without a unit takes any timestamp. Other columns are left out. Where nothing is declared, the first file says what the
columns are, and the others have to agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import InputError, PartitionError, SchemaError
from headwater.serving.building import stored_schema
from headwater.serving.dtypes import dtype_name, parse_dtype, stored_type
from headwater.serving.reserved import RESERVED

if TYPE_CHECKING:
    from headwater.serving.config import TableConfig

__all__ = ["Expected"]

_ANY_TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Expected:
    """The columns that the files of a partition have to have, as they are stored: the key first.

    ``required`` are those in which nothing may be null.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    required: tuple[str, ...]

    @classmethod
    def of(cls, table: TableConfig, first: pa.Schema, where: str) -> Expected:
        """What a table expects, given the schema of the first file; raises if that file does not fit."""
        check_names(first, where)
        names = list(table.columns) or first.names
        for name in (*table.key, table.event_time, table.order_by):
            if name is not None and name not in names:
                raise PartitionError.missing_column(name, first.names, where)
        fields = []
        for name in names:
            have = _stored(first, name, where)
            declared = table.columns.get(name)
            if declared is not None and not _fits(declared.dtype, have):
                raise PartitionError.other_type(name, dtype_name(have), declared.dtype, where)
            fields.append(pa.field(name, have, nullable=declared is None or declared.nullable))
        reserved = [name for name in names if name in RESERVED]
        if reserved:
            expected = "another name: answers have a column of their own by this one"
            raise InputError.bad_argument("columns", reserved[0], expected)
        schema = stored_schema(pa.schema(fields), table.key, where)
        _check_event_time(schema, table.event_time, where)
        required = [f.name for f in schema if not f.nullable]
        return cls(schema, tuple(table.key), tuple(required))

    def check_schema(self, found: pa.Schema, where: str) -> None:
        """Raise unless a file has the columns."""
        check_names(found, where)
        for f in self.schema:
            have = _stored(found, f.name, where)
            if have != f.type:
                raise PartitionError.other_type(f.name, dtype_name(have), dtype_name(f.type), where)

    def check_nulls(self, batch: pa.RecordBatch, where: str) -> None:
        """Raise if there is a null where none may be."""
        for name in self.required:
            if batch.column(name).null_count:
                raise PartitionError.nulls(name, where, key=name in self.key)

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        return list(self.schema.names)


def check_names(schema: pa.Schema, where: str) -> None:
    """Raise if two columns have one name, so that it is not clear which is meant."""
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise PartitionError.unreadable(f"several columns are called `{twice[0]}`", where)


def _stored(schema: pa.Schema, name: str, where: str) -> pa.DataType:
    if name not in schema.names:
        raise PartitionError.missing_column(name, schema.names, where)
    try:
        return stored_type(name, schema.field(name).type)
    except SchemaError as e:
        e.where = where
        raise


def _fits(declared: str, have: pa.DataType) -> bool:
    if declared == _ANY_TIMESTAMP and pa.types.is_timestamp(have):
        return True
    return bool(parse_dtype(declared) == have)


def _check_event_time(schema: pa.Schema, name: str | None, where: str) -> None:
    if name is None:
        return
    kind = schema.field(name).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise PartitionError.other_type(name, dtype_name(kind), "timestamp or date, as event_time has to be", where)
