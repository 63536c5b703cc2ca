"""Texts and bytes in DataFusion: positions count characters, as in Spark.

Counts below zero, which mean something else here (``left(s, -1)`` leaves out the last one), are cut to zero. What Java
does to text outside ASCII is not promised by anybody: such functions raise there, in every engine.
"""

from __future__ import annotations

from headwater.sql.datafusion.spelling import raise_form, refusal, witness
from headwater.sql.functions.function import Form
from headwater.sql.nodes import Call, Literal
from headwater.sql.quoting import literal_sql
from headwater.sql.types import STRING, family

__all__ = ["FORMS"]


def _ascii_only(name: str, body: str, *, beside: int = 0) -> Form:
    """A function that raises where an operand, other than the first ``beside``, is not ASCII."""

    def form(node: Call, a: list[str]) -> str:
        why = raise_form(
            f"{name}() of text outside ASCII is not the same in every engine", witness(node.args, a), STRING
        )
        nothing = " OR ".join(f"{x} IS NULL" for x in a)
        plain = " AND ".join(f"octet_length({x}) = character_length({x})" for x in a[beside:])
        null = "CAST(NULL AS VARCHAR)"
        return f"(CASE WHEN {nothing} THEN {null} WHEN {plain} THEN {body.format(*a)} ELSE {why} END)"

    return form


def _substring(_: Call, a: list[str]) -> str:
    x, start = a[0], f"CAST({a[1]} AS BIGINT)"
    size = f"CAST(character_length({x}) AS BIGINT)"
    # Spark counts from 1 (0 is 1 too), from the end when negative; what lies before the text is cut off the length.
    first = f"(CASE WHEN {start} > 0 THEN {start} - 1 WHEN {start} < 0 THEN {size} + {start} ELSE 0 END)"
    nothing = " OR ".join(f"{v} IS NULL" for v in a)
    if len(a) == 2:
        whole = f"substr({x}, greatest({first}, 0) + 1)"
    else:
        last = f"least(greatest({first} + CAST({a[2]} AS BIGINT), 0), {size})"
        whole = f"substr({x}, greatest({first}, 0) + 1, greatest({last} - greatest({first}, 0), 0))"
    return f"(CASE WHEN {nothing} THEN CAST(NULL AS VARCHAR) ELSE {whole} END)"


def _strict(body: str) -> Form:
    """A template whose parts stand under conditions, made null where an operand is null."""

    def form(_: Call, a: list[str]) -> str:
        nothing = " OR ".join(f"{x} IS NULL" for x in a)
        return f"(CASE WHEN {nothing} THEN CAST(NULL AS VARCHAR) ELSE {body.format(*a)} END)"

    return form


def _joined(node: Call, a: list[str]) -> str:
    if family(node.dtype) == "binary":
        raise refusal("concat() of binaries")
    return "(" + " || ".join(a) + ")"


def _concat_ws(_: Call, a: list[str]) -> str:
    # Without anything to join there is nothing, and not a null.
    joined = f"concat_ws({', '.join(a)})" if len(a) > 1 else "''"
    return f"(CASE WHEN {a[0]} IS NULL THEN CAST(NULL AS VARCHAR) ELSE {joined} END)"


def _split_part(node: Call, a: list[str]) -> str:
    return f"split_part({a[0]}, {a[1]}, {_number(node)})"


def _substring_index(node: Call, a: list[str]) -> str:
    return f"substring_index({a[0]}, {a[1]}, {_number(node)})"


def _number(node: Call) -> int:
    count = node.args[2]
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        raise refusal(f"{node.op}() with a number that is not a constant")
    return count.value


def _rlike(node: Call, a: list[str]) -> str:
    return f"regexp_like({a[0]}, {_pattern(node)})"


def _extracted(node: Call, a: list[str]) -> str:
    # The whole pattern as a group of its own, so that the group asked for is always one more.
    found = f"regexp_match({a[0]}, {literal_sql(f'({_text(node)})')})[{_number(node) + 1}]"
    return f"(CASE WHEN {a[0]} IS NULL THEN CAST(NULL AS VARCHAR) ELSE coalesce({found}, '') END)"


def _replaced(node: Call, a: list[str]) -> str:
    return f"regexp_replace({a[0]}, {_pattern(node)}, {a[2]}, 'g')"


def _pattern(node: Call) -> str:
    return literal_sql(_text(node))


def _text(node: Call) -> str:
    pattern = node.args[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise refusal(f"{node.op}() with a pattern that is not a constant")
    return pattern.value


_ASCII = "(CASE WHEN {0} = '' THEN 0 ELSE ascii({0}) END)"
FORMS: dict[str, Form] = {
    "||": _joined,
    "lower": _ascii_only("lower", "lower({0})"),
    "upper": _ascii_only("upper", "upper({0})"),
    "length": "CAST(character_length({}) AS {type})",
    "octets": "CAST(octet_length({}) AS {type})",
    "octet_length": "CAST(octet_length(hex({})) / 2 AS {type})",
    "bits": "CAST(8 * {} AS {type})",
    "substring": _substring,
    "trim": "btrim({0}, {1})",
    "ltrim": "ltrim({0}, {1})",
    "rtrim": "rtrim({0}, {1})",
    "instr": "CAST(strpos({0}, {1}) AS {type})",
    "contains": "contains({0}, {1})",
    "startswith": "starts_with({0}, {1})",
    "endswith": "ends_with({0}, {1})",
    "left": _strict("left({0}, greatest({1}, 0))"),
    "right": _strict("right({0}, greatest({1}, 0))"),
    "repeat": _strict("repeat({0}, greatest({1}, 0))"),
    "space": _strict("repeat(' ', greatest({0}, 0))"),
    "replace": _strict("CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END"),
    "reverse": "reverse({0})",
    "translate": _ascii_only("translate", "translate({0}, {1}, {2})", beside=1),
    "ascii": f"CAST({_ASCII} AS {{type}})",
    "concat_ws": _concat_ws,
    "lpad": _strict("lpad({0}, greatest({1}, 0), {2})"),
    "rpad": _strict("rpad({0}, greatest({1}, 0), {2})"),
    "split_part": _split_part,
    "substring_index": _substring_index,
    "rlike": _rlike,
    "regexp_extract": _extracted,
    "regexp_replace": _replaced,
    "md5": "md5({0})",
    "sha1": "sha1({0})",
    "sha256": "sha2({0}, 256)",
    "hex": "hex({0})",
    "base64": "base64({0})",
}
