"""Casts of arrays, maps and structs: part by part, and to text as Spark prints them.

An array is cast element by element, a map entry by entry, a struct field by field (by place: the names are those of the
target). As text they are ``[1, null]``, ``{a -> 1}`` and ``{1, x}``: texts inside stand without quotes, nulls are the
word null.

Invariant: a pair of nested types is allowed only if each pair of their parts is; the rule for plain types is passed in.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headwater.sql.binding import fresh, let
from headwater.sql.nodes import Refused
from headwater.sql.quoting import literal_sql
from headwater.sql.types import STRING, family, name_of

__all__ = ["nested_fallible", "nested_form"]

Rule = Callable[[pa.DataType, pa.DataType], bool]
Form = Callable[[str, pa.DataType, pa.DataType], str]


def nested_fallible(source: pa.DataType, target: pa.DataType, rule: Rule) -> bool:
    """May a row fail? Refused where two parts cannot be cast."""

    def part(a: pa.DataType, b: pa.DataType) -> bool:
        return a != b and family(a) != "null" and rule(a, b)

    t = pa.types
    if target == STRING:
        every = [part(p, STRING) for p in _parts(source)]  # each is asked, since each may be refused
        return any(every)
    if t.is_list(source) and t.is_list(target):
        return part(source.value_type, target.value_type)
    if t.is_map(source) and t.is_map(target):
        key, value = part(source.key_type, target.key_type), part(source.item_type, target.item_type)
        return key or value or source.key_type != target.key_type  # two keys may become one
    if t.is_struct(source) and t.is_struct(target) and source.num_fields == target.num_fields:
        every = [part(a.type, b.type) for a, b in zip(source, target, strict=True)]
        return any(every)
    raise Refused(f"a cast of {name_of(source)} to {name_of(target)}", "the types have different shapes")


def _parts(dtype: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_list(dtype):
        return [dtype.value_type]
    if pa.types.is_map(dtype):
        return [dtype.key_type, dtype.item_type]
    return [f.type for f in dtype]


def nested_form(x: str, source: pa.DataType, target: pa.DataType, form: Form) -> str:
    """DuckDB's SQL of a cast that `nested_fallible` allowed."""
    if target == STRING:
        return let([x], lambda v: f"(CASE WHEN {v} IS NOT NULL THEN {_text(v, source, form)} END)")

    def part(v: str, a: pa.DataType, b: pa.DataType) -> str:
        return v if a == b else form(v, a, b)

    e = fresh(x)
    if pa.types.is_list(source):
        return f"list_transform({x}, lambda {e}: {part(e, source.value_type, target.value_type)})"
    if pa.types.is_map(source):
        key = part(f"{e}.key", source.key_type, target.key_type)
        value = part(f"{e}.value", source.item_type, target.item_type)
        return f"map_from_entries(list_transform(map_entries({x}), lambda {e}: {{'key': {key}, 'value': {value}}}))"

    def body(v: str) -> str:
        fields = [
            f"{literal_sql(b.name)}: {part(f'struct_extract({v}, {literal_sql(a.name)})', a.type, b.type)}"
            for a, b in zip(source, target, strict=True)
        ]
        return f"(CASE WHEN {v} IS NOT NULL THEN {{{', '.join(fields)}}} END)"

    return let([x], body)


def _text(x: str, dtype: pa.DataType, form: Form) -> str:
    def part(v: str, kind: pa.DataType) -> str:
        if family(kind) == "null":
            return "'null'"
        return f"coalesce({v if kind == STRING else form(v, kind, STRING)}, 'null')"

    if pa.types.is_struct(dtype):
        fields = [part(f"struct_extract({x}, {literal_sql(f.name)})", f.type) for f in dtype]
        return "'{' || " + " || ', ' || ".join(fields) + " || '}'"
    e = fresh(x)
    if pa.types.is_list(dtype):
        inner, opening, closing = f"list_transform({x}, lambda {e}: {part(e, dtype.value_type)})", "[", "]"
    else:
        entry = f"{part(f'{e}.key', dtype.key_type)} || ' -> ' || {part(f'{e}.value', dtype.item_type)}"
        inner, opening, closing = f"list_transform(map_entries({x}), lambda {e}: {entry})", "{", "}"
    return f"'{opening}' || coalesce(array_to_string({inner}, ', '), '') || '{closing}'"
