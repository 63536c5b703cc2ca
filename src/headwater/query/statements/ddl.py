"""A table's definition as Spark writes it: types for DESCRIBE, and the statement that would make the table."""

from __future__ import annotations

from headwater.base.schema import TYPES, DeltaType, Field
from headwater.base.spark_text import plain_name, text_literal
from headwater.lake.snapshot import Snapshot

__all__ = ["create_statement", "type_ddl", "type_name"]

_SPARK = {t.delta: t.spark for t in TYPES}
# What a new table gets by itself.
_OWN = {"delta.columnMapping.maxColumnId", "delta.minReaderVersion", "delta.minWriterVersion"}
_OWN |= {"delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"}


def type_name(dtype: DeltaType) -> str:
    """Spark's short name of a type.

    >>> type_name({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    """
    if isinstance(dtype, str):
        return _SPARK.get(dtype, dtype)
    if dtype["type"] == "array":
        return f"array<{type_name(dtype['elementType'])}>"
    if dtype["type"] == "map":
        return f"map<{type_name(dtype['keyType'])},{type_name(dtype['valueType'])}>"
    return "struct<" + ",".join(f"{f['name']}:{type_name(f['type'])}" for f in dtype["fields"]) + ">"


def type_ddl(dtype: DeltaType) -> str:
    """A type as DDL writes it, with NOT NULL and comments inside structs."""
    if isinstance(dtype, str):
        return _SPARK.get(dtype, dtype).upper()
    if dtype["type"] == "array":
        return f"ARRAY<{type_ddl(dtype['elementType'])}>"
    if dtype["type"] == "map":
        return f"MAP<{type_ddl(dtype['keyType'])}, {type_ddl(dtype['valueType'])}>"
    return "STRUCT<" + ", ".join(_inner(Field.from_json(f)) for f in dtype["fields"]) + ">"


def _inner(f: Field) -> str:
    return f"{plain_name(f.name)}: {type_ddl(f.type)}{'' if f.nullable else ' NOT NULL'}{_comment(f)}"


def _comment(f: Field) -> str:
    text = f.metadata.get("comment")
    return "" if text is None else f" COMMENT {text_literal(str(text))}"


def create_statement(name: str, now: Snapshot) -> str:
    """The CREATE TABLE that would make an empty table like this one."""
    lines = []
    for f in now.schema.fields:
        generated = f" GENERATED ALWAYS AS ({f.generation})" if f.generation else ""
        column = f"{plain_name(f.name)} {type_ddl(f.type)}"
        lines.append(f"  {column}{'' if f.nullable else ' NOT NULL'}{generated}{_comment(f)}")
    prefix = "delta.constraints."
    checks = {k[len(prefix) :]: v for k, v in now.configuration.items() if k.startswith(prefix)}
    lines += [f"  CONSTRAINT {plain_name(check)} CHECK ({text})" for check, text in sorted(checks.items())]
    parts = [f"CREATE TABLE {'.'.join(map(plain_name, name.split('.')))} (\n" + ",\n".join(lines) + ")", "USING delta"]
    if now.partition_columns:
        parts.append(f"PARTITIONED BY ({', '.join(map(plain_name, now.partition_columns))})")
    if now.state.metadata.description:
        parts.append(f"COMMENT {text_literal(now.state.metadata.description)}")
    shown = {k: v for k, v in sorted(now.configuration.items()) if k not in _OWN and not k.startswith(prefix)}
    if shown:
        listed = ",\n".join(f"  {text_literal(k)} = {text_literal(v)}" for k, v in shown.items())
        parts.append(f"TBLPROPERTIES (\n{listed})")
    return "\n".join(parts)
