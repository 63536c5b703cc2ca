"""Schemas: one table of types, and Delta's own schema as data.

Headwater speaks to five type systems. `TYPES` is the one place that says which type of each is the same
type. Arrow is the language inside; Delta's JSON is the language on storage; a `Schema` keeps what Arrow
cannot say (column-mapping ids, generation expressions, comments) beside the types.

| Delta | Arrow | Spark | DuckDB | DataFusion |

Inside nested types Arrow's fields are all nullable: a NOT NULL field of a struct that is null itself has a value in
Delta's eyes and none in Arrow's. `Field` keeps what the table says, and writers check it.

Timestamps are microseconds: Delta's ``timestamp`` is an instant (Arrow: UTC), ``timestamp_ntz`` is a wall clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from headwater.base.errors import NotFoundError, SchemaError

__all__ = [
    "TYPES",
    "Field",
    "Schema",
    "TypeNames",
    "arrow_type",
    "datafusion_type",
    "delta_type",
    "duckdb_type",
    "normalize_type",
    "spark_type",
    "type_text",
]

DeltaType = str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class TypeNames:
    """One type, as each system writes it."""

    delta: str
    arrow: pa.DataType
    spark: str
    duckdb: str
    datafusion: str


TYPES: tuple[TypeNames, ...] = (
    TypeNames("boolean", pa.bool_(), "boolean", "BOOLEAN", "BOOLEAN"),
    TypeNames("byte", pa.int8(), "tinyint", "TINYINT", "TINYINT"),
    TypeNames("short", pa.int16(), "smallint", "SMALLINT", "SMALLINT"),
    TypeNames("integer", pa.int32(), "int", "INTEGER", "INT"),
    TypeNames("long", pa.int64(), "bigint", "BIGINT", "BIGINT"),
    TypeNames("float", pa.float32(), "float", "FLOAT", "REAL"),
    TypeNames("double", pa.float64(), "double", "DOUBLE", "DOUBLE"),
    TypeNames("string", pa.string(), "string", "VARCHAR", "VARCHAR"),
    TypeNames("binary", pa.binary(), "binary", "BLOB", "BYTEA"),
    TypeNames("date", pa.date32(), "date", "DATE", "DATE"),
    TypeNames(
        "timestamp", pa.timestamp("us", tz="UTC"), "timestamp", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"
    ),
    TypeNames("timestamp_ntz", pa.timestamp("us"), "timestamp_ntz", "TIMESTAMP", "TIMESTAMP"),
)

_BY_DELTA = {t.delta: t for t in TYPES}
_BY_ARROW = {t.arrow: t for t in TYPES}


def _decimal_digits(text: str) -> tuple[int, int] | None:
    if text == "decimal":
        return 10, 0
    if text.startswith("decimal(") and text.endswith(")"):
        precision, _, scale = text[8:-1].partition(",")
        if precision.strip().isdigit() and (scale.strip() or "0").isdigit():
            return int(precision), int(scale or 0)
    return None


def arrow_type(delta: DeltaType) -> pa.DataType:
    """The Arrow type of a Delta type.

    >>> arrow_type("decimal(10,2)")
    Decimal128Type(decimal128(10, 2))
    """
    if isinstance(delta, str):
        if delta in _BY_DELTA:
            return _BY_DELTA[delta].arrow
        if digits := _decimal_digits(delta):
            return pa.decimal128(*digits)
        raise SchemaError.unknown_type(delta, "Delta")
    kind = delta.get("type")
    if kind == "struct":
        return pa.struct([Field.from_json(f).arrow.with_nullable(True) for f in delta["fields"]])
    if kind == "array":
        return pa.list_(pa.field("element", arrow_type(delta["elementType"])))
    if kind == "map":
        return pa.map_(
            pa.field("key", arrow_type(delta["keyType"]), False), pa.field("value", arrow_type(delta["valueType"]))
        )
    raise SchemaError.unknown_type(str(kind), "Delta")


def delta_type(arrow: pa.DataType) -> DeltaType:
    """The Delta type of an Arrow type, after `normalize_type`.

    >>> delta_type(pa.large_string())
    'string'
    """
    arrow = normalize_type(arrow)
    if arrow in _BY_ARROW:
        return _BY_ARROW[arrow].delta
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_struct(arrow):
        if not arrow.num_fields:  # Parquet has no place for it
            raise SchemaError.unknown_type(str(arrow), "Arrow")
        return {"type": "struct", "fields": [Field.from_arrow(f).to_json() for f in arrow]}
    if pa.types.is_list(arrow):
        item = arrow.value_field
        return {"type": "array", "elementType": delta_type(item.type), "containsNull": item.nullable}
    assert pa.types.is_map(arrow), arrow
    return {
        "type": "map",
        "keyType": delta_type(arrow.key_type),
        "valueType": delta_type(arrow.item_type),
        "valueContainsNull": arrow.item_field.nullable,
    }


_NORMAL: dict[pa.DataType, pa.DataType] = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def normalize_type(arrow: pa.DataType) -> pa.DataType:
    """The Arrow type that a Delta table stores for ``arrow``: the smallest that holds every value.

    >>> normalize_type(pa.timestamp("ns"))
    TimestampType(timestamp[us])
    """
    if arrow in _BY_ARROW:
        return arrow
    if arrow in _NORMAL:
        return _NORMAL[arrow]
    t = pa.types
    if t.is_dictionary(arrow):
        return normalize_type(arrow.value_type)
    if t.is_timestamp(arrow):
        return pa.timestamp("us", tz="UTC" if arrow.tz else None)
    if t.is_decimal(arrow) and arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision:
        return pa.decimal128(arrow.precision, arrow.scale)
    if t.is_fixed_size_binary(arrow):
        return pa.binary()
    if t.is_struct(arrow):
        return pa.struct([f.with_type(normalize_type(f.type)) for f in arrow])
    if t.is_map(arrow):
        return pa.map_(
            pa.field("key", normalize_type(arrow.key_type), False),
            pa.field("value", normalize_type(arrow.item_type), arrow.item_field.nullable),
        )
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow) or t.is_list_view(arrow):
        item = arrow.value_field
        return pa.list_(pa.field("element", normalize_type(item.type), item.nullable))
    raise SchemaError.unknown_type(str(arrow), "Arrow")


def _named(arrow: pa.DataType, system: str) -> str:
    """``arrow`` in the SQL of ``system``, which all write nested types alike but for their brackets."""
    if arrow in _BY_ARROW:
        return str(getattr(_BY_ARROW[arrow], system))
    if pa.types.is_decimal(arrow):
        return f"{'decimal' if system == 'spark' else 'DECIMAL'}({arrow.precision},{arrow.scale})"
    if pa.types.is_struct(arrow):
        if system == "spark":
            return "struct<" + ",".join(f"`{_escaped(f.name)}`:{_named(f.type, system)}" for f in arrow) + ">"
        quoted = (f'"{f.name.replace(chr(34), chr(34) * 2)}" {_named(f.type, system)}' for f in arrow)
        return "STRUCT(" + ", ".join(quoted) + ")"
    if pa.types.is_list(arrow):
        item = _named(arrow.value_type, system)
        return f"array<{item}>" if system == "spark" else f"{item}[]"
    if pa.types.is_map(arrow):
        key, item = _named(arrow.key_type, system), _named(arrow.item_type, system)
        return f"map<{key},{item}>" if system == "spark" else f"MAP({key}, {item})"
    raise SchemaError.unknown_type(str(arrow), "Arrow")


def _escaped(name: str) -> str:
    return name.replace("`", "``")


def spark_type(arrow: pa.DataType) -> str:
    """Spark SQL's name of a type: ``bigint``, ``array<string>``.

    >>> spark_type(pa.list_(pa.int32()))
    'array<int>'
    """
    return _named(normalize_type(arrow), "spark")


def duckdb_type(arrow: pa.DataType) -> str:
    """DuckDB's name of a type.

    >>> duckdb_type(pa.list_(pa.int32()))
    'INTEGER[]'
    """
    return _named(normalize_type(arrow), "duckdb")


def datafusion_type(arrow: pa.DataType) -> str:
    """DataFusion's SQL name of a type."""
    return _named(normalize_type(arrow), "datafusion")


def type_text(delta: DeltaType) -> str:
    """A Delta type for messages: ``long``, ``array<long>``."""
    if isinstance(delta, str):
        return delta
    if delta["type"] == "array":
        return f"array<{type_text(delta['elementType'])}>"
    if delta["type"] == "map":
        return f"map<{type_text(delta['keyType'])},{type_text(delta['valueType'])}>"
    return "struct<" + ",".join(f"{f['name']}:{type_text(f['type'])}" for f in delta["fields"]) + ">"


@dataclass(frozen=True, slots=True)
class Field:
    """One column, as Delta's metadata describes it."""

    name: str
    type: DeltaType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Field:
        return cls(data["name"], data["type"], data.get("nullable", True), data.get("metadata") or {})

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, "nullable": self.nullable, "metadata": dict(self.metadata)}

    @classmethod
    def from_arrow(cls, f: pa.Field) -> Field:
        metadata = {}
        if f.metadata and b"comment" in f.metadata:
            metadata["comment"] = f.metadata[b"comment"].decode()
        return cls(f.name, delta_type(f.type), f.nullable, metadata)

    @property
    def arrow(self) -> pa.Field:
        return pa.field(self.name, arrow_type(self.type), self.nullable)

    @property
    def physical_name(self) -> str:
        """The column's name inside data files: another one only under column mapping."""
        return str(self.metadata.get("delta.columnMapping.physicalName", self.name))

    @property
    def generation(self) -> str | None:
        """The expression of a generated column."""
        value = self.metadata.get("delta.generationExpression")
        return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's columns, in order; names are told apart without case, as in Spark."""

    fields: tuple[Field, ...]
    _by_name: Mapping[str, Field] = field(init=False, compare=False, repr=False)
    """The columns by their names in lower case."""

    def __post_init__(self) -> None:
        seen: dict[str, Field] = {}
        for f in self.fields:
            lower = f.name.lower()
            if lower in seen:
                raise SchemaError.duplicate_columns([seen[lower].name, f.name])
            seen[lower] = f
        object.__setattr__(self, "_by_name", seen)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        return cls(tuple(Field.from_json(f) for f in json.loads(text)["fields"]))

    def to_json(self) -> str:
        return json.dumps({"type": "struct", "fields": [f.to_json() for f in self.fields]})

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        return cls(tuple(Field.from_arrow(f) for f in schema))

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([f.arrow for f in self.fields])

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.fields]

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._by_name

    def field(self, name: str, where: str | None = None) -> Field:
        """The column of that name, whatever its case."""
        found = self._by_name.get(name.lower())
        if found is None:
            raise NotFoundError.column(name, self.names, where)
        return found

    def with_field(self, changed: Field) -> Schema:
        """The schema with the column of the same name replaced."""
        return Schema(tuple(changed if f.name == changed.name else f for f in self.fields))

    def plus(self, fields: Iterable[Field]) -> Schema:
        return replace(self, fields=(*self.fields, *fields))
