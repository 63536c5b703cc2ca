"""Outlines of feature tables: what one would be, before what it reads is there.

A project checks all of its declarations before it makes anything. The function is called with a lake whose tables are
only columns; the plan that it gives says which tables it reads, which columns come out, what flows into each, and
whether changes can be followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.schema import Schema
from headwater.derived.outline import Outline, Shape, ShapeOf
from headwater.timeseries.features.constancy import check_constant
from headwater.timeseries.features.definition import Definition
from headwater.timeseries.features.following import NotFollowed, followed, leaves_of
from headwater.timeseries.features.function import Build, name_of
from headwater.timeseries.features.source_lake import SourceLake, built
from headwater.timeseries.node import Node
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.sources.source import Size, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["difference", "outline"]


@dataclass(frozen=True, eq=False)
class ShapeSource(Source):
    """A table of which only the columns are known."""

    shape: Shape
    names: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        fields = [self.shape.arrow_schema.field(n) for n in self.names]
        return pa.schema([f.with_nullable(True).remove_metadata() for f in fields])

    @property
    def size(self) -> Size:
        return Size(None, None)

    def line(self) -> str:
        return f"scan {self.shape.name}"

    def narrowed(self, names: list[str]) -> ShapeSource:
        return replace(self, names=tuple(n for n in self.names if n in names))

    def spark(self, session: SparkSession) -> DataFrame:
        raise NotImplementedError("only the columns are known")


class ShapeLake(SourceLake):
    """Tables as columns."""

    def __init__(self, shape_of: ShapeOf) -> None:
        self._shape_of = shape_of

    def _table(self, name: str) -> Node:
        shape = self._shape_of(name)
        return ShapeSource(shape, tuple(shape.schema.names))


def outline(options: Mapping[str, Any], shape_of: ShapeOf) -> Outline:
    """What a feature table with these options would be: ``function``, ``policy``."""
    build: Build = options["function"]
    unknown = sorted(set(options) - {"function", "policy"})
    if unknown:
        raise InputError.bad_argument(unknown[0], options[unknown[0]], "one of policy")
    stream = built(build, ShapeLake(shape_of))
    check_constant(stream.plan)
    plan = narrowed(stream.plan)
    sources = {leaf.shape.name: leaf for leaf in leaves_of(plan) if isinstance(leaf, ShapeSource)}
    if not sources:
        raise InputError.bad_argument("build", name_of(build), "a function that reads a table of the lake")
    full = None
    if options.get("policy") == "full":
        full = "its policy is `full`"
    else:
        try:
            followed(plan, stream.ordering)
        except NotFollowed as e:
            full = str(e)
    return Outline(
        reads=tuple(sorted(sources)),
        schema=Schema.from_arrow(plan.schema),
        lineage={name: _flowing(plan, frozenset([name])) for name in plan.schema.names},
        conditions=_flowing(plan, frozenset()),
        full=full,
    )


def difference(stored: Definition, wanted: Definition, policy: str | None) -> str | None:
    """Why one definition is not the other; None if it is."""
    if not stored.same_rows(wanted):
        return "its function is another one, or gives another stream"
    if policy is not None and policy != stored.policy:
        return f"its policy is `{stored.policy}` so far"
    return None


def _flowing(node: Node, wanted: frozenset[str]) -> tuple[str, ...]:
    """The columns of tables that are needed for some columns of a plan."""
    found: set[str] = set()

    def down(one: Node, names: frozenset[str]) -> None:
        if isinstance(one, ShapeSource):
            found.update(f"{one.shape.name}.{name}" for name in names if name in one.names)
        for below, needed in zip(one.inputs, one.needs(names), strict=True):
            down(below, frozenset(below.schema.names) if needed is None else needed)

    down(node, wanted)
    return tuple(sorted(found))
