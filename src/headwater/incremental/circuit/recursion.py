"""Recursion on streams: the body is called once, with streams of an inner circuit,
and the fixpoint becomes a node (`nesting.nest`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from headwater.base.errors import InputError, SchemaError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.dataflow.arguments import a_schema, whole
from headwater.incremental.dataflow.dataflow import Dataflow
from headwater.incremental.layout import Layout
from headwater.incremental.nesting.inner import InnerCircuit
from headwater.incremental.nesting.nest import Nest, Port
from headwater.incremental.recipes.row_stream import a_stream
from headwater.incremental.recipes.zero_keys import without_negative_zeros

__all__ = ["recursive"]

Body = Callable[..., Stream | Mapping[str, Stream]]


def recursive(
    circuit: Dataflow,
    schemas: Mapping[str, pa.Schema],
    body: Body,
    outer: Mapping[str, Stream],
    most: int,
    *,
    distinct: bool = True,
) -> dict[str, Stream]:
    """The streams of the variables of a recursion: see `Circuit.recursive`."""
    whole("most", most, 1)
    for schema in schemas.values():
        a_schema("schemas", schema)
    if not schemas:
        raise InputError.bad_argument("schemas", "nothing", "at least one variable")
    inner = InnerCircuit(f"{circuit.name}: {', '.join(schemas)}")
    arguments: dict[str, Stream] = {}
    for name, schema in schemas.items():
        vertex = inner.entry(Layout(schema), name)
        inner.variables[name] = vertex.id
        arguments[name] = Stream(inner, vertex)  # which has no negative zeros: see below
    for name, stream in outer.items():
        vertex = inner.entry(stream.vertex.layout, name)
        inner.imports.append(vertex.id)
        arguments[name] = without_negative_zeros(Stream(inner, vertex))
    given = body(**arguments)
    made = given if isinstance(given, Mapping) else {next(iter(schemas)): given}
    for stream in made.values():
        a_stream("body", stream, inner)
    if set(made) != set(schemas):
        raise InputError.bad_argument("body", sorted(made), f"a stream for each of {', '.join(schemas)}")
    for name, schema in schemas.items():
        stream = made[name]
        if stream.schema.types != schema.types:
            raise SchemaError.type_clash(name, str(stream.schema.types), str(schema.types), where="the recursion")
        aligned = without_negative_zeros(arguments[name]._aligned(stream))
        inner.results[name] = (aligned.distinct() if distinct else aligned).vertex
    vertex = circuit.add(
        lambda *nodes: Nest(nodes, inner, most), [s.vertex for s in outer.values()], by=[()] * len(outer)
    )
    if len(schemas) == 1:
        return {name: Stream(circuit, vertex) for name in schemas}
    ports = {name: circuit.add(lambda n, name=name: Port(n, name), [vertex]) for name in schemas}
    return {name: Stream(circuit, port) for name, port in ports.items()}
