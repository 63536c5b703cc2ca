"""Store assignment: what a value becomes when SQL puts it into a column of another type.

INSERT, UPDATE and MERGE follow Spark's ANSI store assignment. Any number goes into any number, any plain value into
text, and dates and timestamps into one another, by the cast that Spark would make: 1.5 is stored in an INT column as 1,
and a number that is too large is an error. Nothing else goes: a text is not parsed into a number, and a boolean is
none.

The cast becomes part of the query, so that the engine computes it as it computes every CAST, and one that it is not
known to compute as Spark does is refused. Values that the lake stores just as Spark would (a whole number in a wider or
narrower type, say) are left to it: where one of them does not fit, it names the column.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headwater.base.errors import HeadwaterError, SchemaError
from headwater.base.schema import normalize_type, spark_type
from headwater.lake.snapshot import Snapshot
from headwater.sql import expressions
from headwater.sql.fragment import Fragment, joined
from headwater.sql.types import EMPTY_MAP, family, has_void, name_of

__all__ = ["assigned", "cast_for", "cast_to", "may_store", "quoted"]

_NUMBERS = {"integer", "float", "decimal"}
_TIMES = {"date", "timestamp", "timestamp_ntz"}


def may_store(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether Spark stores values of one type in a column of another.

    >>> may_store(pa.int32(), pa.string()), may_store(pa.string(), pa.int32())
    (True, False)
    """
    if have == want or pa.types.is_null(have):
        return True
    if have == EMPTY_MAP and pa.types.is_map(want):
        return True
    if family(have) == "nested" or family(want) == "nested":
        return _alike(have, want) and all(may_store(a, b) for a, b in _pairs(have, want))
    if family(want) == "string":
        return True
    return any(family(have) in kinds and family(want) in kinds for kinds in (_NUMBERS, _TIMES))


def _alike(have: pa.DataType, want: pa.DataType) -> bool:
    return bool(have.id == want.id and have.num_fields == want.num_fields)


def _pairs(have: pa.DataType, want: pa.DataType) -> list[tuple[pa.DataType, pa.DataType]]:
    """The types inside of two types that are built alike."""
    if pa.types.is_map(have):
        return [(have.key_type, want.key_type), (have.item_type, want.item_type)]
    return [(have.field(i).type, want.field(i).type) for i in range(have.num_fields)]


def _as_it_is(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether the lake stores such a value as Spark does, or raises where Spark does."""
    if have == want or pa.types.is_null(have):
        return True
    if has_void(have):
        return False
    if family(have) == "nested":
        named = not pa.types.is_struct(have) or [f.name for f in have] == [f.name for f in want]
        return named and all(_as_it_is(a, b) for a, b in _pairs(have, want))
    pair = family(have), family(want)
    if pair == ("decimal", "decimal"):
        return bool(want.scale >= have.scale)
    if pair == ("float", "float"):
        return bool(want == pa.float64())
    return pair in {("integer", "integer"), ("integer", "decimal")} or (
        pair[0] in _TIMES and pair[1] in ("timestamp", "timestamp_ntz")
    )


def cast_to(
    column: str,
    have: pa.DataType,
    want: pa.DataType,
    where: str | None = None,
    *,
    by_name: bool = False,
    inside: bool = False,
) -> str | None:
    """The type that a value has to be cast to on its way into a column, or None where it goes as it is.

    ``inside``: what lies inside of arrays, maps and structs is cast too, for a writer that does not do it.

    >>> cast_to("n", pa.float64(), pa.int32()), cast_to("n", pa.int64(), pa.int32())
    ('int', None)
    """
    have, want = have if has_void(have) else normalize_type(have), normalize_type(want)
    ordered = _in_order(have, want) if by_name else have
    if may_store(ordered, want) and (not by_name or _same_names(ordered, want)):
        if _as_it_is(ordered, want) and not (inside and pa.types.is_nested(have) and have != want):
            return None
        if ordered == have:
            return spark_type(want)
    raise SchemaError.type_clash(column, name_of(have).replace("`", ""), name_of(want).replace("`", ""), where)


def _in_order(have: pa.DataType, want: pa.DataType) -> pa.DataType:
    """``have`` with the fields of its structs in the order of ``want``, where they are the same."""
    if pa.types.is_struct(have) and pa.types.is_struct(want) and {f.name for f in have} == {f.name for f in want}:
        return pa.struct([f.with_type(_in_order(have.field(f.name).type, f.type)) for f in want])
    return have


def _same_names(have: pa.DataType, want: pa.DataType) -> bool:
    if pa.types.is_struct(have) and [f.name for f in have] != [f.name for f in want]:
        return False
    inside = family(have) == "nested" and family(want) == "nested"
    return not inside or all(_same_names(a, b) for a, b in _pairs(have, want))


def cast_for(
    column: str,
    have: pa.DataType,
    base: Snapshot,
    *,
    by_name: bool = True,
    evolve: bool = False,
    inside: bool = False,
) -> str | None:
    """As `cast_to`, for a column of a table; what the table lacks, or computes itself, is not looked at.

    ``by_name``: the fields of structs are told by their names, and by position otherwise. ``evolve``: a struct may
    bring new fields, which is the lake's business.
    """
    if column not in base.schema or base.schema.field(column).generation:
        return None
    if evolve and pa.types.is_nested(have):
        return None
    return cast_to(column, have, base.schema.field(column).arrow.type, base.where, by_name=by_name, inside=inside)


def assigned(
    assignments: Mapping[str, Fragment], schemas: Mapping[str, pa.Schema], base: Snapshot, whole: str
) -> dict[str, Fragment]:
    """Assignments of a statement, each value cast to the type of its column where Spark would cast it."""
    found: dict[str, Fragment] = {}
    for column, value in assignments.items():
        try:
            dtype = expressions.parse(value, schema=schemas).dtype
        except HeadwaterError:
            # The lake reads it once more and says so itself, after it has looked at the columns.
            found[column] = _typed(column, value, schemas, base)
            continue
        try:
            kind = cast_for(column, dtype, base)
        except SchemaError as error:
            raise error.placed_at(whole, value.place(0)) from None
        found[column] = value if kind is None else joined("CAST((", value, f") AS {kind})")
    return found


def _typed(column: str, value: Fragment, schemas: Mapping[str, pa.Schema], base: Snapshot) -> Fragment:
    """``array()`` and ``map()`` have no type of their own, and take the column's."""
    if column not in base.schema or not pa.types.is_nested(want := base.schema.field(column).arrow.type):
        return value
    cast = joined("CAST((", value, f") AS {spark_type(normalize_type(want))})")
    try:
        expressions.parse(cast, schema=schemas)
    except HeadwaterError:
        return value
    return cast


def quoted(name: str) -> str:
    """A name in backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"
