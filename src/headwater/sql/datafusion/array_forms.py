"""Arrays and structs in DataFusion."""

from __future__ import annotations

from headwater.sql.datafusion.spelling import raise_form, refusal, type_name, witness
from headwater.sql.functions.function import Form
from headwater.sql.nodes import Call, Literal
from headwater.sql.quoting import literal_sql
from headwater.sql.types import family

__all__ = ["FORMS", "field_of", "size"]

_NO_ELEMENT = "an array has no element of that number"


def size(x: str) -> str:
    """The number of elements as a bigint."""
    return f"CAST(cardinality({x}) AS BIGINT)"


def field_of(x: str, name: str) -> str:
    """A field of a struct; of a null there is none, whatever lies in memory below it."""
    return f"(CASE WHEN {x} IS NOT NULL THEN get_field({x}, {literal_sql(name)}) END)"


def _picked(node: Call, a: list[str], inside: str, place: str) -> str:
    if family(node.dtype) == "nested":
        raise refusal("an element that is an array or a struct")
    why = raise_form(_NO_ELEMENT, witness(node.args, a), node.dtype)
    nothing = f"{a[0]} IS NULL OR {a[1]} IS NULL"
    null = f"CAST(NULL AS {type_name(node.dtype)})"
    return f"(CASE WHEN {nothing} THEN {null} WHEN {inside} THEN array_element({a[0]}, {place}) ELSE {why} END)"


def _item(node: Call, a: list[str]) -> str:
    return _picked(node, a, f"{a[1]} >= 0 AND {a[1]} < {size(a[0])}", f"CAST({a[1]} AS BIGINT) + 1")


def _element(node: Call, a: list[str]) -> str:
    return _picked(node, a, f"{a[1]} <> 0 AND abs(CAST({a[1]} AS BIGINT)) <= {size(a[0])}", f"CAST({a[1]} AS BIGINT)")


def _array(_: Call, a: list[str]) -> str:
    return f"make_array({', '.join(a)})"


def _contains(_: Call, a: list[str]) -> str:
    # Null where it is not found but a null might have been it.
    nothing = f"{a[0]} IS NULL OR {a[1]} IS NULL"
    found = f"array_has({a[0]}, {a[1]})"
    maybe = f"array_position({a[0]}, NULL) IS NOT NULL"
    return f"(CASE WHEN {nothing} THEN NULL WHEN {found} THEN TRUE WHEN {maybe} THEN NULL ELSE FALSE END)"


def _sequence(node: Call, a: list[str]) -> str:
    # Constants that fit each other, as range() gives them; of columns the bounds would have to be checked.
    if len(a) != 3 or not all(isinstance(n, Literal) and n.value is not None for n in node.args):
        raise refusal("sequence() of columns")
    return f"generate_series({', '.join(a)})"


def _struct(node: Call, a: list[str]) -> str:
    pairs = zip(node.args[::2], a[1::2], strict=True)
    fields = ", ".join(f"{literal_sql(n.value)}, {x}" for n, x in pairs if isinstance(n, Literal))
    return f"named_struct({fields})"


def _field(node: Call, a: list[str]) -> str:
    name = node.args[1]
    assert isinstance(name, Literal) and isinstance(name.value, str)
    return field_of(a[0], name.value)


def _joined(_: Call, a: list[str]) -> str:
    # A list of nothing but nulls is joined to nothing, and not to a null.
    nothing = f"{a[0]} IS NULL OR {a[1]} IS NULL"
    return f"(CASE WHEN {nothing} THEN CAST(NULL AS VARCHAR) ELSE coalesce(array_to_string({a[0]}, {a[1]}), '') END)"


FORMS: dict[str, Form] = {
    "array": _array,
    "size": "CAST(cardinality({0}) AS {type})",
    "item": _item,
    "field": _field,
    "element_at": _element,
    "array_contains": _contains,
    "sequence": _sequence,
    "array_max": "array_max({0})",
    "array_min": "array_min({0})",
    "array_join": _joined,
    "named_struct": _struct,
}
