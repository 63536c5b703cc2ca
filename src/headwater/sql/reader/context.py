"""What the reading of one query shares: its text, the tables it may name, its parameters, and the keys given out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from headwater.base.errors import InputError
from headwater.sql.functions.user import UserFunction
from headwater.sql.lexis import Scanned
from headwater.sql.literals import text_literal
from headwater.sql.nodes import Literal, Node, Refused, Wrong, call
from headwater.sql.nullability import nullable
from headwater.sql.operators import united
from headwater.sql.plan import Attribute, Named, Plan, Reference
from headwater.sql.tokens import tokenize
from headwater.sql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    NULL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    array_of,
    literal_decimal,
)

if TYPE_CHECKING:
    from headwater.sql.reader.scopes import RowScope

__all__ = ["Arguments", "Context", "Parameters", "SchemaOf", "TableFunctions"]

SchemaOf = Callable[[str, int | None, datetime | None], pa.Schema]
Arguments = tuple[tuple[str | None, object], ...]
TableFunctions = Callable[[str, Arguments], pa.Schema]
Parameters = Mapping[str, object] | Sequence[object]
_LONGEST_KEY = 40


@dataclass
class Context:
    """One query's reading."""

    text: str
    scanned: Scanned
    schema_of: SchemaOf
    parameters: Parameters
    read_query: Callable[[Context, exp.Expr, RowScope | None], Plan]
    functions: TableFunctions | None = None
    user_functions: Mapping[str, UserFunction] = field(default_factory=dict)
    tables: dict[str, Reference] = field(default_factory=dict)
    used: set[object] = field(default_factory=set)
    # What current_timestamp() means: one instant for the whole query.
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def attribute(self, name: str, dtype: pa.DataType, *, nullable: bool = True) -> Attribute:
        """A new column, with a key of its own."""
        return Attribute(name, f"{name[:_LONGEST_KEY]}#{next(self._numbers)}", dtype, nullable)

    def named(self, name: str, node: Node) -> Named:
        """A new column for an expression."""
        return Named(self.attribute(name, node.dtype, nullable=nullable(node)), node)

    def table_name(self, name: str) -> str:
        """A name for a definition of WITH that no other one has."""
        return f"{name}#{next(self._numbers)}"

    def copied(self, reference: Reference) -> Reference:
        """Another reading of the same definition."""
        columns = tuple(replace(a, key=self.attribute(a.name, a.dtype).key) for a in reference.columns)
        return Reference(reference.name, reference.keys, columns)

    def position(self, node: exp.Expr | None) -> int | None:
        """Where in the user's text a parsed node begins, or None."""
        if node is None:
            return None
        starts = [n.meta[k] for n in node.walk() for k in ("start", "clause") if k in n.meta]
        return self.scanned.original(min(starts)) if starts else None

    def position_of(self, refused: Refused, node: exp.Expr) -> int | None:
        """Where the refused part of ``node`` begins, as near as the parsed text tells."""
        part = refused.part
        if isinstance(part, str):  # the name of a column, outside calls if it stands there
            columns = [c for c in node.find_all(exp.Column) if c.name.lower() == part.lower()]
            columns.sort(key=lambda c: c.find_ancestor(exp.Anonymous, exp.Group) is not None)
            part = columns[0] if columns else None
        found = self.position(part) if isinstance(part, exp.Expr) else None
        return self.position(node) if found is None else found

    def name_of(self, identifier: exp.Expr) -> str:
        """The name an identifier spells; texts in quotes are no names."""
        name = str(identifier.name)
        start = identifier.meta.get("start")
        if name in self.scanned.texts and start is not None and self.scanned.sql[start : start + 1] in ("'", '"'):
            raise Wrong("a text stands in the place of a name", "write names bare or in `backticks`")
        return name

    def identifier(self, value: Node) -> tuple[str, ...]:
        """The parts of the name that IDENTIFIER(…) is given as a constant string."""
        name = value.value if isinstance(value, Literal) else None
        if not isinstance(name, str):
            raise Refused("IDENTIFIER() of something else than a constant string", "write IDENTIFIER('t.a')")
        tokens = list(tokenize(name))
        names, dots = tokens[::2], tokens[1::2]
        if (
            len(tokens) % 2 == 0
            or any(t.kind not in ("word", "name") for t in names)
            or any(t.text != "." for t in dots)
        ):
            raise Wrong(f"IDENTIFIER({name!r}) is no name", "write names bare or in `backticks`, with points between")
        return tuple(str(t.value) for t in names)

    def parameter(self, node: exp.Expr) -> Node:
        """The value behind ``:name`` or ``?``, as a constant."""
        if node.args.get("this"):
            name = str(node.name)
            if not isinstance(self.parameters, Mapping) or name not in self.parameters:
                known = ", ".join(self.parameters) if isinstance(self.parameters, Mapping) else "positional ones"
                raise InputError.bad_argument("parameters", f":{name}", f"a value for it (given: {known or 'none'})")
            self.used.add(name)
            return constant(self.parameters[name], f":{name}")
        place = int(node.meta["number"])
        if isinstance(self.parameters, Mapping) or place >= len(self.parameters):
            given = 0 if isinstance(self.parameters, Mapping) else len(self.parameters)
            raise InputError.bad_argument("parameters", given, f"a value for the `?` of number {place + 1}")
        self.used.add(place)
        return constant(self.parameters[place], f"? number {place + 1}")


def constant(value: object, name: str = "parameters") -> Node:
    """A Python value as a constant of Spark's type; a list is an array of what its values meet in.

    >>> constant(3).dtype, constant(Decimal("1.50")).dtype, str(constant([1, 2**40]).dtype)
    (DataType(int32), Decimal128Type(decimal128(3, 2)), 'list<element: int64>')
    """
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()  # out of a DataFrame
    if isinstance(value, list | tuple):
        return _array(value, name)
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, bool):
        return Literal(value, BOOLEAN)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return Literal(value, INT if -(2**31) <= value < 2**31 else LONG)
    if isinstance(value, Decimal) and value.is_finite():
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        plain = value if exponent <= 0 else value.quantize(Decimal(1))
        found = literal_decimal(plain)
        if found is not None:
            return Literal(plain, pa.decimal128(*found))
    kinds: tuple[tuple[type, pa.DataType], ...] = (
        (float, DOUBLE),
        (bytes, pa.binary()),
        (datetime, TIMESTAMP),
        (date, DATE),
    )
    for kind, dtype in kinds:
        if isinstance(value, kind):
            naive = isinstance(value, datetime) and value.tzinfo is None
            return Literal(value, TIMESTAMP_NTZ if naive else dtype)
    if value is None:
        return Literal(None, NULL)
    raise InputError.bad_argument(
        name, value, "None, bool, int, float, Decimal, str, bytes, date, datetime, or a list of one of these"
    )


def _array(values: Sequence[object], name: str) -> Node:
    items = [constant(v, name) for v in values]
    if not items or all(i.dtype == NULL for i in items) or not all(isinstance(i, Literal) for i in items):
        raise InputError.bad_argument(name, list(values), "a list with at least one value, and no lists in it")
    try:
        same = united(items, "a list")
    except Refused:
        raise InputError.bad_argument(name, list(values), "a list of values of one type") from None
    return call("array", same, array_of(same[0].dtype))
