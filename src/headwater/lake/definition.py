"""Definitions: the first metadata of a table, and the schema changes that keep every file readable.

A column added later is null in older rows; a widened column reads older, narrower values as they were. Under
column mapping each column (nested ones too) gets an id and a name of its own inside the files, so it can be
renamed or dropped without touching data.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.schema import DeltaType, Field, Schema, type_text
from headwater.base.storage import now_ms
from headwater.lake import properties
from headwater.lake.actions import Metadata

__all__ = ["add_fields", "define", "is_mapped", "is_wider", "keep_columns", "widen", "with_schema"]

_MAPPING_KEYS = ("delta.columnMapping.id", "delta.columnMapping.physicalName")
_FORBIDDEN = set(" ,;{}()\n\t=")


def is_mapped(configuration: Mapping[str, str]) -> bool:
    return configuration.get("delta.columnMapping.mode", "none") != "none"


def define(
    schema: pa.Schema | Schema,
    *,
    partition_by: Sequence[str] = (),
    table_properties: Mapping[str, str] | None = None,
    constraints: Mapping[str, str] | None = None,
    generated: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Metadata:
    """The metadata of a new table."""
    configuration = {**properties.DEFAULTS, **(table_properties or {})}
    configuration |= {f"delta.constraints.{k}": v for k, v in (constraints or {}).items()}
    properties.check(configuration)
    columns = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
    if not columns.fields:
        raise InputError.bad_argument("schema", "empty", "at least one column")
    for column, expression in (generated or {}).items():
        f = columns.field(column)
        columns = columns.with_field(replace(f, metadata={**f.metadata, "delta.generationExpression": expression}))
    split_by = _partitioning(columns, partition_by)
    made = Metadata(str(uuid.uuid4()), columns, split_by, configuration, name, description, now_ms())
    return with_schema(made, columns)


def with_schema(metadata: Metadata, columns: Schema) -> Metadata:
    """The metadata with other columns; under column mapping, those without an id get one."""
    configuration = dict(metadata.configuration)
    split_by = _partitioning(columns, metadata.partition_columns)
    if is_mapped(configuration):
        columns, last = _assign_ids(columns, int(configuration.get("delta.columnMapping.maxColumnId", "0")))
        configuration["delta.columnMapping.maxColumnId"] = str(last)
    else:
        _check_names(columns)
    return replace(metadata, schema=columns, partition_columns=split_by, configuration=configuration)


def _partitioning(columns: Schema, partition_by: Sequence[str]) -> tuple[str, ...]:
    names = tuple(columns.field(c).name for c in ([partition_by] if isinstance(partition_by, str) else partition_by))
    for name in names:
        f = columns.field(name)
        if not isinstance(f.type, str):
            raise SchemaError.bad_partition(name, f"its type is {type_text(f.type)}")
        if names.count(name) > 1:
            raise SchemaError.bad_partition(name, "it is named twice")
    if names and len(names) == len(columns.fields):
        raise SchemaError.bad_partition(names[-1], "no column would be left for the files")
    return names


def _check_names(columns: Schema) -> None:
    def walk(f: Field) -> None:
        if not f.name or _FORBIDDEN & set(f.name):
            raise SchemaError.bad_column_name(f.name)
        for child in _struct_fields(f.type):
            walk(child)

    for f in columns.fields:
        walk(f)


def _struct_fields(dtype: DeltaType) -> list[Field]:
    if isinstance(dtype, str):
        return []
    if dtype["type"] == "struct":
        return [Field.from_json(f) for f in dtype["fields"]]
    inner = [dtype[k] for k in ("elementType", "keyType", "valueType") if k in dtype]
    return [f for t in inner for f in _struct_fields(t)]


def _assign_ids(columns: Schema, last: int) -> tuple[Schema, int]:
    fields = []
    for f in columns.fields:
        numbered, last = _number(f, last)
        fields.append(numbered)
    return Schema(tuple(fields)), last


def _number(f: Field, last: int) -> tuple[Field, int]:
    metadata: dict[str, Any] = dict(f.metadata)
    if "delta.columnMapping.id" not in metadata:
        last += 1
        metadata["delta.columnMapping.id"] = last
        metadata.setdefault("delta.columnMapping.physicalName", f"col-{uuid.uuid4()}")
    dtype, last = _number_type(f.type, last)
    return Field(f.name, dtype, f.nullable, metadata), last


def _number_type(dtype: DeltaType, last: int) -> tuple[DeltaType, int]:
    if isinstance(dtype, str):
        return dtype, last
    out: dict[str, Any] = dict(dtype)
    if dtype["type"] == "struct":
        children = []
        for f in dtype["fields"]:
            numbered, last = _number(Field.from_json(f), last)
            children.append(numbered.to_json())
        out["fields"] = children
    for key in ("elementType", "keyType", "valueType"):
        if key in out:
            out[key], last = _number_type(out[key], last)
    return out, last


def keep_columns(columns: Schema, old: Metadata) -> Schema:
    """New columns of a table that maps its columns; those that ``old`` has, with the same type, keep their identity.

    So whoever follows the table sees a replaced table as the same columns with other rows, as in Delta's own
    implementation.
    """
    return Schema(tuple(_keep(f, old.schema.fields, mapped=is_mapped(old.configuration)) for f in columns.fields))


def _keep(f: Field, known: Sequence[Field], *, mapped: bool) -> Field:
    old = next((g for g in known if g.name.lower() == f.name.lower() and g.arrow.type == f.arrow.type), None)
    if old is None:
        return f
    mine = {k: old.metadata[k] for k in _MAPPING_KEYS if k in old.metadata} if mapped else {_MAPPING_KEYS[1]: old.name}
    return replace(f, type=_keep_type(f.type, old.type, mapped=mapped), metadata={**f.metadata, **mine})


def _keep_type(dtype: DeltaType, old: DeltaType, *, mapped: bool) -> DeltaType:
    if isinstance(dtype, str) or isinstance(old, str):
        return dtype
    if dtype["type"] == "struct":
        known = [Field.from_json(f) for f in old["fields"]]
        fields = [_keep(Field.from_json(f), known, mapped=mapped).to_json() for f in dtype["fields"]]
        return {**dtype, "fields": fields}
    inner = ("elementType", "keyType", "valueType")
    return {k: _keep_type(v, old[k], mapped=mapped) if k in inner else v for k, v in dtype.items()}


def add_fields(metadata: Metadata, fields: Sequence[pa.Field | Field]) -> Metadata:
    """The metadata with columns added at the end; they are null in rows that are there already."""
    new = [f if isinstance(f, Field) else Field.from_arrow(f) for f in fields]
    for f in new:
        if f.name in metadata.schema:
            raise InputError.bad_argument("column", f.name, "a name that the table does not have yet")
        if not f.nullable:
            new[new.index(f)] = replace(f, nullable=True)
    configuration = dict(metadata.configuration)
    if is_mapped(configuration):
        added, last = _assign_ids(Schema(tuple(new)), int(configuration.get("delta.columnMapping.maxColumnId", "0")))
        configuration["delta.columnMapping.maxColumnId"] = str(last)
        new = list(added.fields)
    else:
        _check_names(Schema(tuple(new)))
    return replace(metadata, schema=metadata.schema.plus(new), configuration=configuration)


_WIDER: Mapping[str, tuple[str, ...]] = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}


def widen(metadata: Metadata, column: str, to: pa.DataType, version: int) -> Metadata:
    """The metadata with a column's type widened (Delta's ``typeWidening``); files stay as they are."""
    from headwater.base.schema import delta_type

    f = metadata.schema.field(column)
    target = delta_type(to)
    if not (isinstance(f.type, str) and isinstance(target, str)) or not is_wider(f.type, target):
        raise SchemaError.bad_widening(f.name, type_text(f.type), type_text(target))
    if f.name in metadata.partition_columns:
        raise SchemaError.bad_widening(f.name, f"partition column of {type_text(f.type)}", type_text(target))
    change = {"toType": target, "fromType": f.type, "tableVersion": version}
    changes = [*f.metadata.get("delta.typeChanges", []), change]
    widened = replace(f, type=target, metadata={**f.metadata, "delta.typeChanges": changes})
    configuration = {**metadata.configuration, "delta.enableTypeWidening": "true"}
    return replace(metadata, schema=metadata.schema.with_field(widened), configuration=configuration)


def is_wider(have: str, want: str) -> bool:
    """Whether every value of ``have`` is one of ``want``, by the protocol's list of safe changes."""
    if want in _WIDER.get(have, ()):
        return True
    integers = {"byte": 10, "short": 10, "integer": 10, "long": 20}
    if want.startswith("decimal("):
        precision, scale = (int(x) for x in want[8:-1].split(","))
        if have in integers:
            return precision - scale >= integers[have]
        if have.startswith("decimal("):
            old_precision, old_scale = (int(x) for x in have[8:-1].split(","))
            grown = scale - old_scale
            return grown >= 0 and precision - old_precision >= grown and want != have
    return False


def drop_or_rename(metadata: Metadata, column: str, new_name: str | None) -> Metadata:
    """The metadata with a column renamed, or dropped (``new_name`` is None); needs column mapping."""
    from headwater.base.errors import Action, UnsupportedError

    f = metadata.schema.field(column)
    what = "dropping" if new_name is None else "renaming"
    if new_name is not None and not new_name:
        raise InputError.bad_argument("new_name", new_name, "a name")
    if not is_mapped(metadata.configuration):
        raise UnsupportedError.operation(
            f"{what} column `{f.name}`",
            "files know it by its name",
            Action("map_columns"),
        )
    used = [k for k, v in metadata.configuration.items() if k.startswith("delta.constraints.") and f.name in v]
    used += [g.name for g in metadata.schema.fields if g.generation and f.name in g.generation]
    if used or (new_name is None and f.name in metadata.partition_columns):
        why = f"it is used by {', '.join(used)}" if used else "the table is partitioned by it"
        raise UnsupportedError.operation(f"{what} column `{f.name}`", why, "drop what uses it first")
    if new_name is not None and new_name in metadata.schema and new_name.lower() != f.name.lower():
        raise SchemaError.duplicate_columns([new_name])
    fields = [g if g is not f else (replace(g, name=new_name) if new_name else None) for g in metadata.schema.fields]
    kept = tuple(g for g in fields if g is not None)
    if not kept:
        raise InputError.bad_argument("column", column, "not the last column of the table")
    split_by = tuple(new_name if new_name and c == f.name else c for c in metadata.partition_columns)
    return replace(metadata, schema=Schema(kept), partition_columns=split_by)


def drop_constraint(metadata: Metadata, name: str, where: str) -> Metadata:
    """The metadata without a CHECK constraint."""
    prefix = "delta.constraints."
    known = {k[len(prefix) :].lower(): k for k in metadata.configuration if k.startswith(prefix)}
    if name.lower() not in known:
        raise NotFoundError.constraint(name, [k[len(prefix) :] for k in known.values()], where)
    configuration = {k: v for k, v in metadata.configuration.items() if k != known[name.lower()]}
    return replace(metadata, configuration=configuration)
