"""From the typed tree to steps: equal parts become one, constants are computed at once, and every other part is a
closure.

A part that cannot fail and needs no DuckDB is computed for all rows wherever it stands, so equal ones are shared
throughout. A part that is *guarded* (it may fail, or goes through DuckDB) is good only for the rows of the region it
stands in: a branch of a CASE, the right side of an AND. Regions are nested; a guarded part that was planned in an
enclosing region is shared, because that one has all the rows.

Two passes: `plan` makes a graph of items and counts their uses, `build` makes a closure of each, with a memo where it
has several uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.nodes import Call, Column, Literal, Node, rewrite
from headwater.sql.types import has_void
from headwater.sql.vectorised.conditional import case_step, coalesce_step
from headwater.sql.vectorised.fallback import Group
from headwater.sql.vectorised.frame import Frame, Kernel, RowFailed, Step
from headwater.sql.vectorised.logic import joined_step
from headwater.sql.vectorised.registry import is_quiet, is_strict, kernel_of_call
from headwater.sql.vectorised.structs import field_vector
from headwater.sql.vectorised.vector import Constant, Operand, Vector, constant_of, dense, inner

__all__ = ["Compiler", "Item", "Region"]

_BRANCHING = {"and", "or", "case", "coalesce"}
_ROOT = 0


@dataclass(slots=True, eq=False)
class Region:
    """Rows that are reached together; ``number`` is the place of their mask in a frame."""

    number: int
    parent: Region | None


@dataclass(slots=True, eq=False)
class Item:
    """One part of the program."""

    node: Node
    kind: str
    region: Region
    args: tuple[Item, ...] = ()
    regions: tuple[Region | None, ...] = ()
    guarded: bool = False
    level: int = 0
    uses: int = 0
    constant: Constant | None = None
    kernel: Kernel | None = None
    part: Node | None = None
    group: Group | None = None
    place: int = 0
    step: Step | None = field(default=None, repr=False)


class Compiler:
    """Makes the steps of one program."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.root = Region(_ROOT, None)
        self.regions = 1
        self.slots = 0
        self.columns: set[int] = set()
        self.groups: dict[tuple[int, int], Group] = {}
        self.numbers: dict[object, int] = {}
        self.numbered: dict[int, tuple[Node, int]] = {}
        self.items: dict[tuple[int, int], Item] = {}
        self.kernels: dict[int, Kernel | Constant | None] = {}
        self.open: dict[int, frozenset[Node]] = {}

    def number(self, node: Node) -> int:
        """Equal parts have equal numbers; 0.0 and -0.0 are not equal here."""
        known = self.numbered.get(id(node))
        if known is not None:
            return known[1]
        key: object
        if isinstance(node, Literal):
            key = ("literal", node.dtype, type(node.value).__name__, repr(node.value))
        elif isinstance(node, Column):
            key = ("column", node.alias, node.path, node.dtype)
        else:
            assert isinstance(node, Call), f"{type(node).__name__} in an expression of one row"
            key = (node.op, node.dtype, *(self.number(a) for a in node.args))
        found = self.numbers.setdefault(key, len(self.numbers))
        self.numbered[id(node)] = (node, found)  # which keeps the node alive, and its id with it
        return found

    def _kernel(self, node: Call) -> Kernel | Constant | None:
        number = self.number(node)
        if number not in self.kernels:
            self.kernels[number] = kernel_of_call(node)
        return self.kernels[number]

    def is_quiet(self) -> bool:
        """Is there no part that makes floating-point warnings?"""
        return all(is_quiet(node) for node, _ in self.numbered.values() if isinstance(node, Call))

    def is_native(self, node: Node) -> bool:
        """Has the part itself a kernel, whatever its operands have?"""
        if isinstance(node, Call):
            return node.op in _BRANCHING or self._kernel(node) is not None
        return True

    def plan(self, node: Node, region: Region) -> Item:
        """The item of a part in a region."""
        number = self.number(node)
        place: Region | None = region
        while place is not None:
            found = self.items.get((number, place.number))
            if found is not None:
                found.uses += 1
                return found
            place = place.parent
        item = self._planned(node, region)
        item.uses += 1
        self.items[number, item.region.number] = item
        return item

    def _planned(self, node: Node, region: Region) -> Item:
        if isinstance(node, Literal):
            return Item(node, "constant", self.root, constant=constant_of(node.value, node.dtype))
        if isinstance(node, Column):
            index = self.schema.get_field_index(node.path[0])
            assert index >= 0, f"the schema has no column {node.path[0]!r}, or several"
            self.columns.add(index)
            return Item(node, "column", self.root, place=index)
        assert isinstance(node, Call)
        if node.op in _BRANCHING:
            return self._branching(node, region)
        kernel = self._kernel(node)
        if kernel is None:
            return self._asked(node, region)
        if isinstance(kernel, Constant):
            return Item(node, "constant", self.root, constant=kernel)
        args = tuple(self.plan(a, region) for a in node.args)
        if is_strict(node.op) and any(map(_is_null, args)):
            # What the other operands are, and whether they fail, does not matter to Spark either.
            return Item(node, "constant", self.root, constant=Constant(node.dtype, None))
        item = self._item(node, "call", region, args)
        item.kernel = kernel
        return _folded(item)

    def _item(self, node: Call, kind: str, region: Region, args: tuple[Item, ...]) -> Item:
        guarded = node.fallible or any(a.guarded for a in args)
        level = max((a.level for a in args), default=0)
        return Item(node, kind, region if guarded else self.root, args, guarded=guarded, level=level)

    def _region(self, parent: Region) -> Region:
        self.regions += 1
        return Region(self.regions - 1, parent)

    def _branching(self, node: Call, region: Region) -> Item:
        args: list[Item] = []
        regions: list[Region | None] = []
        current = region
        for at, arg in enumerate(node.args):
            # A value of a CASE has its rows for itself; a later condition, AND and OR have what is left of the rows.
            aside = node.op == "case" and at % 2 == 1
            inside = self._region(current) if at > 0 else current
            item = self.plan(arg, inside)
            args.append(item)
            regions.append(inside if item.guarded and inside is not region else None)
            if not aside:
                current = inside
        made = self._item(node, node.op, region, tuple(args))
        made.regions = tuple(regions)
        return made

    def _asked(self, node: Call, region: Region) -> Item:
        inputs: list[Item] = []
        columns: dict[int, Column] = {}

        def outside(part: Node) -> Node | None:
            if part is node or isinstance(part, Literal) or has_void(part.dtype) or self._is_open(part):
                return None
            if isinstance(part, Call) and (part.op == "lambda" or not self.is_native(part)):
                return None
            number = self.number(part)
            if number not in columns:
                columns[number] = Column(None, (f"i{len(inputs)}",), part.dtype)
                inputs.append(self.plan(part, region))
            return columns[number]

        part = rewrite(node, outside, {})
        item = self._item(node, "duckdb", region, tuple(inputs))
        item.guarded, item.region, item.level, item.part = True, region, item.level + 1, part
        return item

    def _is_open(self, node: Node) -> bool:
        """Does it read a parameter of a lambda that stands outside of it?"""
        return bool(self._free(node))

    def _free(self, node: Node) -> frozenset[Node]:
        if not isinstance(node, Call):
            return frozenset()
        if node.op == "variable":
            return frozenset(node.args)
        number = self.number(node)
        if number not in self.open:
            found = frozenset[Node]().union(*map(self._free, node.args))
            if node.op == "lambda":
                found -= {p.args[0] for p in node.args[:-1] if isinstance(p, Call)}
            self.open[number] = found
        return self.open[number]

    def slot(self) -> int:
        """A new place in a frame's memo."""
        self.slots += 1
        return self.slots - 1

    def build(self, item: Item) -> Step:
        """The closure of an item."""
        if item.step is None:
            step = self._built(item)
            if item.kind == "column" or (item.uses > 1 and item.constant is None and item.kind != "duckdb"):
                step = _remembered(step, self.slot(), item.region.number if item.guarded else None)
            item.step = step
        return item.step

    def _built(self, item: Item) -> Step:
        if item.constant is not None:
            constant = item.constant
            return lambda _: constant
        if item.kind == "column":
            assert isinstance(item.node, Column)
            return _column(item.place, item.node)
        if item.kind == "duckdb":
            return self._asking(item)
        steps = [self.build(a) for a in item.args]
        if item.kind == "call":
            assert item.kernel is not None
            if steps and all(a.constant is not None for a in item.args):
                # It could not be computed beforehand, because it fails.
                steps[0] = _spread(steps[0])
            return _called(item.kernel, steps, [a.constant for a in item.args])
        branches = [(s, r.number if r is not None else None) for s, r in zip(steps, item.regions, strict=True)]
        if item.kind in ("and", "or"):
            return joined_step(item.kind, branches)
        if item.kind == "coalesce":
            return coalesce_step(item.node.dtype, branches)
        pairs = list(zip(branches[:-1:2], branches[1::2], strict=True))
        return case_step(item.node.dtype, pairs, branches[-1])

    def _asking(self, item: Item) -> Step:
        assert item.part is not None
        key = (item.region.number, item.level)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(self.slot(), item.region.number)
        item.group, place = group, len(group.parts)
        names: dict[tuple[str, ...], tuple[str, ...]] = {}
        for at, arg in enumerate(item.args):
            name = f"c{len(group.inputs)}"
            names[(f"i{at}",)] = (name,)
            group.names.append(name)
            group.inputs.append(self.build(arg))

        def renamed(part: Node) -> Node | None:
            return Column(None, names[part.path], part.dtype) if isinstance(part, Column) else None

        group.parts.append(rewrite(item.part, renamed))
        group.dtypes.append(item.node.dtype)
        found = group
        return lambda frame: found.ask(frame)[place]


def _is_null(item: Item) -> bool:
    return pa.types.is_null(item.node.dtype) or (item.constant is not None and item.constant.values is None)


def _folded(item: Item) -> Item:
    """The item as a constant, if all its operands are, and it does not fail."""
    if not item.args or any(a.constant is None for a in item.args):
        return item
    assert item.kernel is not None
    operands: list[Operand] = [a.constant for a in item.args if a.constant is not None]
    try:
        with np.errstate(all="ignore"):
            found = item.kernel(Frame(_no_column, 1, 0, 1), dense(operands[0], 1), *operands[1:])
    except RowFailed:
        return item
    if isinstance(found, Vector):
        found = _first(found)
    item.kind, item.constant, item.guarded, item.region = "constant", found, False, item.region
    return item


def _first(vector: Vector) -> Constant:
    values = vector.values
    if isinstance(values, pa.Array):
        scalar = values[0]
        return Constant(vector.dtype, scalar if scalar.is_valid else None)
    if vector.valid is not None and not vector.valid[0]:
        return Constant(vector.dtype, None)
    value = values[0]
    plain = pa.types.is_decimal(vector.dtype) or pa.types.is_boolean(vector.dtype)
    return Constant(vector.dtype, value.item() if plain and isinstance(value, np.generic) else value)


def _no_column(_: int) -> Vector:
    raise AssertionError("constants have no columns")


def _column(index: int, node: Column) -> Step:
    dtype, fields = node.dtype, node.path[1:]

    def step(frame: Frame) -> Operand:
        vector = frame.read(index)
        for name in fields:
            vector = field_vector(vector.values, name, dtype)
        values = vector.values
        if not isinstance(values, pa.Array):
            return vector if vector.dtype is dtype else Vector(dtype, values, vector.valid)
        if values.type != dtype:
            values = values.cast(dtype)
        return inner(Vector(dtype, values))

    return step


def _spread(step: Step) -> Step:
    return lambda frame: dense(step(frame), frame.rows)


def _remembered(step: Step, slot: int, region: int | None) -> Step:
    def plain(frame: Frame) -> Operand:
        found: Any = frame.memo[slot]
        if found is None:
            found = frame.memo[slot] = step(frame)
        return found  # type: ignore[no-any-return]

    def guarded(frame: Frame) -> Operand:
        found: Any = frame.memo[slot]
        if found is None:
            before = frame.active
            frame.active = frame.actives[region or _ROOT]
            found = frame.memo[slot] = step(frame)
            frame.active = before
        return found  # type: ignore[no-any-return]

    return plain if region is None else guarded


def _called(kernel: Kernel, steps: list[Step], constants: list[Constant | None]) -> Step:
    call: Callable[..., Operand] = kernel
    if not steps:
        return call
    one = steps[0]
    if len(steps) == 1:
        return lambda frame: call(frame, one(frame))
    if all(c is not None for c in constants[1:]):
        # Patterns, places and units: there is nothing to compute for them.
        known = constants[1:]
        return lambda frame: call(frame, one(frame), *known)
    if len(steps) == 2:
        left, right = steps
        return lambda frame: call(frame, left(frame), right(frame))
    return lambda frame: call(frame, *(s(frame) for s in steps))
