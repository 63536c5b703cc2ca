"""Feeding: what users give to a step, made into Z-sets and commands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.change import WEIGHT, ChangeBatch, as_table
from headwater.base.errors import ConstraintError, InputError, NotFoundError, SchemaError
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.circuit.sources import Command, KeyedSource, Verb
from headwater.incremental.dataflow.vertex import shard_of
from headwater.incremental.layout import Layout
from headwater.incremental.packing import pack_weighted
from headwater.incremental.zset import ZSet, fill_derived

if TYPE_CHECKING:
    from headwater.incremental.operators.node import Node

__all__ = ["Delete", "Insert", "Patch", "Upsert", "divided", "keys_first", "taken"]


@dataclass(frozen=True, slots=True)
class _Rows:
    data: Any


class Insert(_Rows):
    """Rows for a table with a key that must not be there yet."""


class Upsert(_Rows):
    """Rows for a table with a key that take the place of those with the same key."""


class Delete(_Rows):
    """Keys of rows to delete; keys that are not there are ignored."""


class Patch(_Rows):
    """Keys with some other columns: those are changed, the rest stays; keys that are not there are ignored."""


_VERBS: dict[type[_Rows], Verb] = {Insert: "insert", Upsert: "upsert", Delete: "delete", Patch: "patch"}


def taken(node: Node, data: Any) -> list[ZSet | Command]:
    """What a user gave for an input, checked against its schema."""
    if isinstance(data, list) and data and all(isinstance(d, _Rows | ChangeBatch) for d in data):
        return [piece for part in data for piece in taken(node, part)]
    if not isinstance(node, KeyedSource):
        if isinstance(data, _Rows):
            raise InputError.bad_argument(node.detail, type(data).__name__, "rows or a change: this input has no key")
        return [_zset(node.layout, data, node.detail)]
    if isinstance(data, ChangeBatch):
        return [Command("change", _changes(node, data))]
    verb: Verb = "upsert"
    command = type(data).__name__ if isinstance(data, _Rows) else None
    if isinstance(data, _Rows):
        verb, data = _VERBS[type(data)], data.data
    table = as_table(data)
    if WEIGHT in table.schema.names:
        if command is not None:
            raise InputError.bad_argument(node.detail, f"{command} of rows with {WEIGHT}", "rows without weights")
        return [Command("change", _changes(node, ChangeBatch.from_table(table)))]
    return [_command(node, verb, table)]


def _changes(node: KeyedSource, change: ChangeBatch) -> ZSet:
    rows = _one_zero(change.rows, node.keyed)
    return _zset(
        node.keyed,
        change if rows is change.rows else ChangeBatch.from_table(rows.append_column(WEIGHT, pa.array(change.weights))),
        node.detail,
    )


def _one_zero(table: pa.Table, layout: Layout) -> pa.Table:
    """The rows with 0.0 for -0.0 in their keys, which are one key."""
    for name in layout.names[: layout.keys]:
        if name in table.schema.names and pa.types.is_floating(table.schema.field(name).type):
            at = table.schema.get_field_index(name)
            plain = pc.add(table[name], pa.scalar(0.0, table.schema.field(name).type))
            table = table.set_column(at, table.schema.field(name), plain)
    return table


def _command(node: KeyedSource, verb: Verb, table: pa.Table) -> Command:
    layout = node.keyed
    table = _one_zero(table, layout)
    names = layout.names
    keys = names[: layout.keys]
    wanted = names if verb in {"insert", "upsert"} else [n for n in names if n in table.schema.names or n in keys]
    missing = [n for n in wanted if n not in table.schema.names]
    if missing:
        raise SchemaError.missing_columns(missing, where=f"input `{node.detail}`")
    extra = [n for n in table.schema.names if n not in names]
    if extra:
        raise NotFoundError.column(extra[0], names, where=f"input `{node.detail}`")
    for field in layout.schema:
        if not field.nullable and field.name in table.schema.names and table[field.name].null_count:
            raise ConstraintError.not_null(field.name, table[field.name].null_count, where=f"input `{node.detail}`")
    given = table.select([n for n in wanted if n in table.schema.names])
    arrays = [
        _cast(given[f.name], f, node.detail) if f.name in given.schema.names else pa.nulls(len(given), f.type)
        for f in layout.schema
    ]
    rows = ZSet.packed(layout, pa.Table.from_arrays(arrays, names=names))
    return Command(verb, rows, tuple(i for i, n in enumerate(names) if n in given.schema.names))


def _zset(layout: Layout, data: Any, name: str) -> ZSet:
    if isinstance(data, ZSet):
        if data.layout != layout:
            raise SchemaError.type_clash(name, str(data.schema), str(layout.schema), where=f"input `{name}`")
        return data
    if isinstance(data, pa.Table | pa.RecordBatch) and _is_plain(layout, data.schema):
        packed = pack_weighted(layout, data, weighted=data.num_columns > len(layout.columns))
        if packed is not None:
            fill_derived(layout, packed[0])
            return ZSet(layout, *packed)
    weights: Any = 1
    if isinstance(data, ChangeBatch):
        table, weights = data.rows, data.weights
    else:
        table = as_table(data)
        if WEIGHT in table.schema.names:
            change = ChangeBatch.from_table(table)
            table, weights = change.rows, change.weights
    if not table.schema.equals(layout.schema):
        missing = [n for n in layout.names if n not in table.schema.names]
        if missing:
            raise SchemaError.missing_columns(missing, where=f"input `{name}`")
        extra = [n for n in table.schema.names if n not in layout.names]
        if extra:
            raise NotFoundError.column(extra[0], layout.names, where=f"input `{name}`")
        table = pa.Table.from_arrays([_cast(table[f.name], f, name) for f in layout.schema], schema=layout.schema)
    for field in layout.schema:
        if not field.nullable and table[field.name].null_count:
            raise ConstraintError.not_null(field.name, table[field.name].null_count, where=f"input `{name}`")
    return ZSet.packed(layout, table, weights)


def _is_plain(layout: Layout, schema: pa.Schema) -> bool:
    """Is it exactly the layout's columns, and maybe a weight,
    with nothing to cast? The last schema that was is remembered.
    """
    if layout.taken is None or not schema.equals(layout.taken):
        names, types = layout.names, layout.schema.types
        if schema.names == [*names, WEIGHT]:
            types = [*types, pa.int64()]
        elif schema.names != names:
            return False
        if layout.has_nested or schema.types != types:
            return False
        layout.taken = schema
    return True


def _cast(column: pa.ChunkedArray, field: pa.Field, name: str) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SchemaError.type_clash(field.name, str(column.type), str(field.type), where=f"input `{name}`") from None


def divided(piece: ZSet | Command, shards: int) -> list[Any]:
    """A piece of input for each shard; None where there is nothing."""
    if shards == 1:
        return [piece]
    if isinstance(piece, Command):
        layout = piece.rows.layout
        keyed = Arrangement(layout, layout.names[: layout.keys], keys=layout.keys)
        target = shard_of(keyed, piece.rows, shards)
        parts = [np.flatnonzero(target == s) for s in range(shards)]
        return [Command(piece.verb, piece.rows.filtered(p), piece.columns) if len(p) else None for p in parts]
    bounds = [len(piece) * s // shards for s in range(shards + 1)]
    return [ZSet(piece.layout, piece.rows[a:b], piece.owners) if b > a else None for a, b in itertools.pairwise(bounds)]


def keys_first(schema: pa.Schema, keys: Sequence[str], where: str) -> pa.Schema:
    """The schema with the columns of the key first, which are not null."""
    for key in keys:
        if key not in schema.names:
            raise NotFoundError.column(key, schema.names, where=where)
    first = [schema.field(k).with_nullable(False) for k in keys]
    return pa.schema([*first, *(f for f in schema if f.name not in keys)])
