"""Types: a table's columns as Spark's, and a frame's columns as ours.

Delta's schema on storage is the JSON of Spark's own `StructType`, so the way between them is that JSON. What Spark is
shown has no Delta metadata but comments, and may be null everywhere: what a file lacks is null, and a constraint of the
table is not a promise of each old file.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from headwater.base.errors import SchemaError
from headwater.base.schema import DeltaType, Field, Schema, arrow_type
from headwater.base.spark_text import quoted_name
from headwater.sql.types import EMPTY_MAP

__all__ = ["arrow_schema", "column", "loose_field", "physical_struct", "spark_struct", "spark_type"]


def column(name: str) -> str:
    """A column's name as the DataFrame API takes it, whatever characters it has."""
    return quoted_name(name)


def spark_struct(schema: Schema, names: list[str] | None = None) -> st.StructType:
    """The columns as Spark's, those of ``names`` only if they are given."""
    fields = schema.fields if names is None else [schema.field(n) for n in names]
    return st.StructType.fromJson({"type": "struct", "fields": [_shown(f) for f in fields]})


def spark_type(dtype: DeltaType) -> st.DataType:
    """A type of the table as Spark's."""
    return st.StructType.fromJson({"type": "struct", "fields": [_shown(Field("c", dtype))]})[0].dataType


def _shown(f: Field) -> dict[str, Any]:
    metadata = {"comment": f.metadata["comment"]} if "comment" in f.metadata else {}
    return {"name": f.name, "type": _loose(f.type), "nullable": True, "metadata": metadata}


def _loose(dtype: DeltaType) -> DeltaType:
    """The type with null allowed at every level."""
    if isinstance(dtype, str):
        return dtype
    if dtype["type"] == "struct":
        return {"type": "struct", "fields": [_shown(Field.from_json(f)) for f in dtype["fields"]]}
    if dtype["type"] == "array":
        return {"type": "array", "elementType": _loose(dtype["elementType"]), "containsNull": True}
    key, value = _loose(dtype["keyType"]), _loose(dtype["valueType"])
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def loose_field(f: Field) -> Field:
    """The column as Spark is shown it, for rows that go to Spark as Arrow."""
    return Field(f.name, _loose(f.type))


def physical_struct(fields: list[Field]) -> st.StructType:
    """The columns by their names (and ids) inside the files of a table with column mapping."""
    return st.StructType.fromJson({"type": "struct", "fields": [_physical(f) for f in fields]})


def _physical(f: Field) -> dict[str, Any]:
    metadata = {}
    if "delta.columnMapping.id" in f.metadata:
        metadata["parquet.field.id"] = int(f.metadata["delta.columnMapping.id"])
    return {"name": f.physical_name, "type": _physical_type(f.type), "nullable": True, "metadata": metadata}


def _physical_type(dtype: DeltaType) -> DeltaType:
    if isinstance(dtype, str):
        return dtype
    if dtype["type"] == "struct":
        return {"type": "struct", "fields": [_physical(Field.from_json(f)) for f in dtype["fields"]]}
    if dtype["type"] == "array":
        return {"type": "array", "elementType": _physical_type(dtype["elementType"]), "containsNull": True}
    key, value = _physical_type(dtype["keyType"]), _physical_type(dtype["valueType"])
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def _void_type(kind: object) -> pa.DataType | None:
    """The Arrow type of ``NULL``, ``array()`` or ``map()``, and None for all others."""
    if kind == "void":
        return pa.null()
    if not isinstance(kind, dict):
        return None
    if kind.get("type") == "array" and (element := _void_type(kind["elementType"])) is not None:
        return pa.list_(element)
    if kind.get("type") == "map" and kind["keyType"] == "void":
        return EMPTY_MAP
    return None


def arrow_schema(struct: st.StructType) -> pa.Schema:
    """A frame's columns as Arrow types, each of which may be null: that a frame has none now is no rule for a table."""
    fields = []
    for f in json.loads(struct.json())["fields"]:
        if (empty := _void_type(f["type"])) is not None:
            fields.append(pa.field(f["name"], empty))
            continue
        try:
            kind = arrow_type(_loose(f["type"]))
        except (SchemaError, KeyError, TypeError) as e:
            raise SchemaError.unknown_type(struct[f["name"]].dataType.simpleString(), "Spark") from e
        comment = (f.get("metadata") or {}).get("comment")
        fields.append(pa.field(f["name"], kind, metadata={"comment": comment} if comment else None))
    return pa.schema(fields)
