"""Conditions that depend on the way: programs over a stack of numbers, for the kernel.

Whatever part of a condition looks at one place is a column, computed beforehand (`values`); only what joins places is
code. Strings and long decimals are compared by their ranks among all values that are compared with them. What has no
code here, `NotCoded`, is computed by Python each time the search comes to it, which is exact and slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from headwater.kernels.row_conditions import AGGREGATES, CODE
from headwater.sql.matching.values import RowValue
from headwater.sql.nodes import Call, Literal, Node, call, walk
from headwater.sql.row_patterns.calls import (
    AGGREGATE,
    ALL_ROWS,
    LABEL,
    NUMBER,
    VALUE,
    Place,
    RowAggregate,
    aggregate_of,
    place_of,
)
from headwater.sql.types import family
from headwater.sql.vectorised import compile_expression

__all__ = ["Coded", "Coder", "NotCoded", "conjuncts", "is_here"]

_COMPARING = {"=", "!=", "<", "<=", ">", ">=", "<=>"}
_ARITHMETIC = {"+": "add_double", "-": "subtract_double", "*": "multiply_double"}
_DEEPEST = 31
_LONGEST_INT = (1 << 63) - 1
HERE, OF_ALL = -1, -2
INT_SLOT, DOUBLE_SLOT, SUM_SLOT, DOUBLE_SUM_SLOT, COUNT_SLOT, AVERAGE_SLOT, NUMBER_SLOT = range(7)


class NotCoded(Exception):
    """The condition is Python's to compute."""


@dataclass
class Coded:
    """All conditions of a pattern that depend on the way, and what they read.

    Columns come as (value, kind) with kind ``int``, ``double`` or ``rank``; ranks of one type share an order with the
    constants of that type.
    """

    dtypes: dict[str, pa.DataType]
    variables: tuple[str, ...]
    code: list[tuple[int, int, int]] = field(default_factory=list)
    constants: list[tuple[str, Any, pa.DataType]] = field(default_factory=list)
    slots: list[tuple[int, ...]] = field(default_factory=list)
    ints: list[tuple[RowValue, str]] = field(default_factory=list)
    doubles: list[RowValue] = field(default_factory=list)
    sets: list[tuple[str, ...]] = field(default_factory=list)
    aggregates: list[tuple[int, int, int, int]] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)

    def set_number(self, variables: tuple[str, ...]) -> int:
        """The number of a set of variables."""
        if variables not in self.sets:
            self.sets.append(variables)
        return self.sets.index(variables)

    def column(self, node: Node, kind: str) -> int:
        """The number of a column among those of its kind; ``node`` looks at one place."""
        where: list[Any] = self.doubles if kind == "double" else self.ints
        key = ("column", kind, node)
        if key not in self._known:
            value = RowValue.of(node, self.dtypes)
            where.append(value if kind == "double" else (value, kind))
            self._known[key] = len(where) - 1
        return self._known[key]

    def slot(self, *parts: int) -> int:
        """The number of a slot."""
        found = (*parts, *([0] * (5 - len(parts))))
        if found not in self.slots:
            self.slots.append(found)
        return self.slots.index(found)

    def constant(self, kind: str, value: Any, dtype: pa.DataType) -> int:
        """The number of a constant; one of kind ``rank`` gets its number from the rows."""
        self.constants.append((kind, value, dtype))
        return len(self.constants) - 1

    def aggregate(self, aggregate: RowAggregate) -> tuple[int, int]:
        """The kind and the number of the slot that holds an aggregate."""
        key = ("aggregate", aggregate)
        which = HERE if aggregate.variables == ALL_ROWS else self.set_number(aggregate.variables)
        op, dtype = aggregate.op, aggregate.dtype
        argument = _argument(aggregate)
        if aggregate.distinct or op not in ("count", "sum", "avg", "min", "max"):
            raise NotCoded
        if op == "count":
            given = (AGGREGATES["count"], which, -1 if argument is None else self.column(_marked(argument), "int"), 0)
            kind = COUNT_SLOT
        else:
            assert argument is not None
            sort = kind_of(argument.dtype)
            if sort == "rank" or pa.types.is_boolean(argument.dtype) or pa.types.is_float32(argument.dtype):
                raise NotCoded
            if op == "avg" and (dtype != pa.float64() or sort != "double"):
                if not pa.types.is_integer(argument.dtype):
                    raise NotCoded
                argument, sort = call("cast", (argument,), pa.float64()), "double"
            if op == "sum" and sort == "int" and kind_of(dtype) != "int":
                raise NotCoded
            word = {"sum": "sum", "avg": "sum", "min": "min", "max": "max"}[op]
            word += "_double" if sort == "double" else ""
            given = (AGGREGATES[word], which, self.column(argument, sort), int(sort == "double"))
            kind = AVERAGE_SLOT if op == "avg" else DOUBLE_SUM_SLOT if sort == "double" else SUM_SLOT
        if key not in self._known:
            self.aggregates.append(given)
            self._known[key] = len(self.aggregates) - 1
        return kind, self._known[key]


def _argument(aggregate: RowAggregate) -> Node | None:
    """The value of a row that is aggregated, null where the row does not count; None if every row counts."""
    if len(aggregate.args) > 1:
        raise NotCoded
    here = [Place().value(a) for a in aggregate.args]
    if aggregate.where is None:
        return here[0] if here else None
    where = Place().value(aggregate.where)
    value = here[0] if here else Literal(1, pa.int64())
    return call("case", (where, value, Literal(None, value.dtype)), value.dtype)


def _marked(node: Node) -> Node:
    """A number in the place of a value that is only counted."""
    present = call("is not null", (node,), pa.bool_())
    return call("case", (present, Literal(1, pa.int64()), Literal(None, pa.int64())), pa.int64())


def kind_of(dtype: pa.DataType) -> str:
    """How the kernel holds values of a type: ``int``, ``double``, or the ``rank`` among others."""
    if pa.types.is_float64(dtype) or pa.types.is_float32(dtype):
        return "double"
    if pa.types.is_decimal(dtype):
        return "int" if dtype.precision <= 18 else "rank"
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return "rank"
    if family(dtype) in ("integer", "date", "timestamp", "timestamp_ntz", "boolean"):
        return "int"
    raise NotCoded


def conjuncts(node: Node) -> list[Node]:
    """The conditions that an AND joins."""
    if isinstance(node, Call) and node.op == "and":
        return [part for arg in node.args for part in conjuncts(arg)]
    return [node]


def is_here(place: Place, variable: str) -> bool:
    """Whether it is the row that is being tried for a variable, or one at a distance from it."""
    mine = place.variables == ALL_ROWS or variable in place.variables
    return mine and not place.first and place.skipped == 0


_HERE = Place()


def base_of(node: Call, variable: str) -> Place | str:
    """Which row a value starts from: the one that is tried, or another; `LABEL` if it is not of a row alone."""
    place = place_of(node)
    if any(isinstance(n, Call) and n.op == LABEL for n in walk(node)):
        return LABEL
    return _HERE if is_here(place, variable) else replace(place, shift=0)


class Coder:
    """Writes the condition of one variable."""

    def __init__(self, coded: Coded, variable: str) -> None:
        self.coded, self.variable = coded, variable
        self.out: list[tuple[int, int, int]] = []
        self.depth = 0
        self._bases: dict[int, tuple[Node, frozenset[object]]] = {}

    def condition(self, node: Node) -> tuple[int, int]:
        """Write a condition; gives where its code begins and ends."""
        self.write(node)
        begin = len(self.coded.code)
        self.coded.code += self.out
        return begin, len(self.coded.code)

    def bases(self, node: Node) -> frozenset[object]:
        """The rows that a tree's values start from."""
        if id(node) not in self._bases:
            found: frozenset[object] = frozenset()
            if isinstance(node, Call) and node.op == VALUE:
                found = frozenset({base_of(node, self.variable)})
            elif isinstance(node, Call) and node.op in (AGGREGATE, NUMBER):
                found = frozenset({node.op})
            elif isinstance(node, Call):
                found = frozenset().union(*map(self.bases, node.args))
            self._bases[id(node)] = (node, found)
        return self._bases[id(node)][1]

    def emit(self, op: str, first: int = 0, second: int = 0, *, pushes: int = 0) -> None:
        self.out.append((CODE[op], first, second))
        self.depth += pushes
        if self.depth > _DEEPEST:
            raise NotCoded

    def write(self, node: Node) -> str:
        """Write a tree; gives the kind of its value."""
        bases = self.bases(node)
        if not bases:
            return self._constant(node)
        if len(bases) == 1 and isinstance(base := next(iter(bases)), Place):
            return self._read(node, base)
        assert isinstance(node, Call)
        if node.op == AGGREGATE:
            self.emit("slot", self.coded.slot(*self.coded.aggregate(aggregate_of(node))), pushes=1)
            return kind_of(node.dtype)
        if node.op == NUMBER:
            self.emit("slot", self.coded.slot(NUMBER_SLOT), pushes=1)
            return "int"
        writer = _WRITERS.get(node.op)
        if writer is None:
            raise NotCoded
        return writer(self, node)

    def _read(self, node: Node, base: Place) -> str:
        """A column, in the row that all of the tree's values start from."""
        kind = kind_of(node.dtype)
        column = self.coded.column(node, kind)
        sort = DOUBLE_SLOT if kind == "double" else INT_SLOT
        if base == _HERE:
            slot = self.coded.slot(sort, HERE, 0, 0, column)
        else:
            which = OF_ALL if base.variables == ALL_ROWS else self.coded.set_number(base.variables)
            slot = self.coded.slot(sort, which, int(base.first), base.skipped, column)
        self.emit("slot", slot, pushes=1)
        return kind

    def _constant(self, node: Node) -> str:
        value = node.value if isinstance(node, Literal) else self._computed(node)
        if value is None:
            self.emit("null", pushes=1)
            return "null" if pa.types.is_null(node.dtype) else kind_of(node.dtype)
        kind = kind_of(node.dtype)
        self.emit("constant", self.coded.constant(kind, value, node.dtype), pushes=1)
        return kind

    def _computed(self, node: Node) -> Any:
        if node.fallible:
            raise NotCoded
        return compile_expression(node, pa.schema([])).run([], 1).to_arrow()[0].as_py()

    # --- operators

    def compared(self, node: Call) -> str:
        kinds = {self.write(a) for a in node.args} - {"null"}
        if len(kinds) != 1 or len({a.dtype for a in node.args}) != 1:
            raise NotCoded
        self.emit(node.op + ("d" if kinds == {"double"} else ""), pushes=-1)
        return "int"

    def joined(self, node: Call) -> str:
        for number, arg in enumerate(node.args):
            self.write(arg)
            if number:
                self.emit(node.op, pushes=-1)
        return "int"

    def negated(self, node: Call) -> str:
        self.write(node.args[0])
        self.emit("not")
        return "int"

    def is_null(self, node: Call) -> str:
        self.write(node.args[0])
        self.emit("is_null" if node.op == "is null" else "is_not_null")
        return "int"

    def arithmetic(self, node: Call) -> str:
        if pa.types.is_float64(node.dtype):
            for arg in node.args:
                self.write(arg)
            self.emit(_ARITHMETIC[node.op], pushes=-1)
            return "double"
        if pa.types.is_decimal(node.dtype):
            if node.dtype.precision > 18:
                raise NotCoded
            scales = [getattr(a.dtype, "scale", 0) for a in node.args]
            for arg, scale in zip(node.args, scales, strict=True):
                if self.write(arg) != "int":
                    raise NotCoded
                if node.op != "*" and scale < node.dtype.scale:
                    self._times(10 ** (node.dtype.scale - scale))
            if node.op == "*" and sum(scales) != node.dtype.scale:
                raise NotCoded
        elif not pa.types.is_integer(node.dtype):
            raise NotCoded
        else:
            for arg in node.args:
                self.write(arg)
        self.emit(node.op, 0, _largest(node.dtype), pushes=-1)
        return "int"

    def divided(self, node: Call) -> str:
        if not pa.types.is_float64(node.dtype):
            raise NotCoded
        for arg in node.args:
            self.write(arg)
        self.emit("divide_double", pushes=-1)
        return "double"

    def signed(self, node: Call) -> str:
        kind = self.write(node.args[0])
        if pa.types.is_float32(node.dtype) or kind == "rank":
            raise NotCoded
        if kind == "double":
            self.emit(f"{node.op}_double")
        else:
            self.emit(node.op, -_largest(node.dtype) - 1)
        return kind

    def cast(self, node: Call) -> str:
        source, target = node.args[0].dtype, node.dtype
        kind = self.write(node.args[0])
        if pa.types.is_integer(source) and pa.types.is_integer(target) and target.bit_width >= source.bit_width:
            return kind
        if pa.types.is_integer(source) and pa.types.is_float64(target):
            self.emit("to_double")
            return "double"
        if pa.types.is_float32(source) and pa.types.is_float64(target):
            return kind
        if pa.types.is_decimal(target) and target.precision <= 18 and kind == "int":
            scale = getattr(source, "scale", 0) if pa.types.is_decimal(source) else 0
            if not (pa.types.is_integer(source) or pa.types.is_decimal(source)) or scale > target.scale:
                raise NotCoded
            if pa.types.is_decimal(source) and source.precision - scale > target.precision - target.scale:
                raise NotCoded
            self._times(10 ** (target.scale - scale), 10**target.precision - 1)
            return "int"
        raise NotCoded

    def _times(self, factor: int, largest: int = _LONGEST_INT) -> None:
        self.emit("constant", self.coded.constant("int", factor, pa.int64()), pushes=1)
        self.emit("*", 0, largest, pushes=-1)

    def later(self, node: Call) -> str:
        for arg in node.args:
            self.write(arg)
        self.emit("+", 0, _LONGEST_INT, pushes=-1)
        return "int"

    def apart(self, node: Call) -> str:
        """``timestampdiff(from, to, 1)``: microseconds; ``datediff(to, from)``: days."""
        by_micros = node.op == "timestampdiff"
        if by_micros and not (isinstance(node.args[2], Literal) and node.args[2].value == 1):
            raise NotCoded
        for arg in (node.args[1], node.args[0]) if by_micros else node.args:
            self.write(arg)
        self.emit("-", 0, _largest(node.dtype), pushes=-1)
        return "int"

    def case(self, node: Call) -> str:
        """``case(condition, value, …, else)``, innermost last."""
        if len(node.args) == 1:
            return self.write(node.args[0])
        return self._choice(node.args[0], node.args[1], self._else(node))

    def _else(self, node: Call) -> Node:
        rest = node.args[2:]
        if not rest:
            return Literal(None, node.dtype)
        return rest[0] if len(rest) == 1 else Call("case", rest, node.dtype, node.fallible)

    def _choice(self, condition: Node, value: Node, other: Node) -> str:
        self.write(condition)
        kinds = {self.write(value), self.write(other)} - {"null"}
        if len(kinds) != 1 or kinds == {"rank"}:
            raise NotCoded
        kind = kinds.pop()
        self.emit("if_double" if kind == "double" else "if", pushes=-2)
        return kind

    def coalesced(self, node: Call) -> str:
        first, *rest = node.args
        if not rest:
            return self.write(first)
        other = rest[0] if len(rest) == 1 else Call("coalesce", tuple(rest), node.dtype, node.fallible)
        return self._choice(call("is not null", (first,), pa.bool_()), first, other)

    def contained(self, node: Call) -> str:
        value, *others = node.args
        parts = [call("=", (value, other), pa.bool_()) for other in others]
        return self.joined(Call("or", tuple(parts), pa.bool_(), node.fallible))


def _largest(dtype: pa.DataType) -> int:
    return (1 << (dtype.bit_width - 1)) - 1 if pa.types.is_integer(dtype) else _LONGEST_INT


_WRITERS: dict[str, Callable[[Coder, Call], str]] = {
    **dict.fromkeys(_COMPARING, Coder.compared),
    **dict.fromkeys(_ARITHMETIC, Coder.arithmetic),
    "/": Coder.divided,
    "and": Coder.joined,
    "or": Coder.joined,
    "not": Coder.negated,
    "is null": Coder.is_null,
    "is not null": Coder.is_null,
    "minus": Coder.signed,
    "abs": Coder.signed,
    "cast": Coder.cast,
    "add micros": Coder.later,
    "timestampdiff": Coder.apart,
    "datediff": Coder.apart,
    "case": Coder.case,
    "coalesce": Coder.coalesced,
    "in": Coder.contained,
}
