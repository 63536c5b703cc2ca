"""Alter: schema and properties, changed in commits of their own that touch no data file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import Action, ConstraintError, InputError
from headwater.base.schema import Field
from headwater.lake import definition, properties, protocol, transaction
from headwater.lake.actions import Metadata
from headwater.lake.conflicts import Proposal
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot, Target
from headwater.lake.transaction import Committed
from headwater.sql import expressions

__all__ = [
    "add_columns",
    "add_constraint",
    "comment_column",
    "drop_column",
    "drop_constraint",
    "drop_not_null",
    "rename_column",
    "set_properties",
    "unset_properties",
    "widen_column",
]


def _run(
    target: Target,
    operation: str,
    parameters: dict[str, Any],
    change: Callable[[Snapshot], Metadata],
    *,
    reads: bool = False,
) -> Committed:
    def propose(base: Snapshot) -> Proposal:
        metadata = change(base)
        if metadata == base.state.metadata:
            return Proposal(operation)
        needed = protocol.needed(metadata.schema, metadata.configuration)
        raised = protocol.with_features(base.state.protocol, needed)
        return Proposal(
            operation,
            parameters,
            metadata=metadata,
            protocol=None if raised == base.state.protocol else raised,
            reads=(lambda _: True) if reads else None,
            yields_to_appends=False,
        )

    return transaction.run(target, propose)


def add_columns(target: Target, fields: Sequence[pa.Field | Field]) -> Committed:
    """Add columns at the end; rows that are there have null in them."""
    names = [f.name for f in fields]
    return _run(target, "ADD COLUMNS", {"columns": names}, lambda b: definition.add_fields(b.state.metadata, fields))


def widen_column(target: Target, column: str, to: pa.DataType) -> Committed:
    """Give a column a wider type; data files stay as they are."""

    def change(base: Snapshot) -> Metadata:
        return definition.widen(base.state.metadata, column, to, base.version + 1)

    return _run(target, "CHANGE COLUMN", {"column": column, "type": str(to)}, change)


def rename_column(target: Target, column: str, new_name: str) -> Committed:
    """Rename a column (column mapping only)."""
    parameters = {"oldColumnPath": column, "newColumnPath": new_name}
    return _run(
        target, "RENAME COLUMN", parameters, lambda b: definition.drop_or_rename(b.state.metadata, column, new_name)
    )


def drop_column(target: Target, column: str) -> Committed:
    """Drop a column (column mapping only); its values stay in old files until they are rewritten."""
    return _run(
        target,
        "DROP COLUMNS",
        {"columns": [column]},
        lambda b: definition.drop_or_rename(b.state.metadata, column, None),
    )


def drop_not_null(target: Target, column: str) -> Committed:
    """Let a column be null."""

    def change(base: Snapshot) -> Metadata:
        f = base.schema.field(column, base.where)
        return replace(base.state.metadata, schema=base.schema.with_field(replace(f, nullable=True)))

    return _run(target, "CHANGE COLUMN", {"column": column, "nullable": True}, change)


def comment_column(target: Target, column: str, comment: str) -> Committed:
    """Say what a column holds."""

    def change(base: Snapshot) -> Metadata:
        f = base.schema.field(column, base.where)
        said = replace(f, metadata={**f.metadata, "comment": comment})
        return replace(base.state.metadata, schema=base.schema.with_field(said))

    return _run(target, "CHANGE COLUMN", {"column": column, "comment": comment}, change)


def set_properties(target: Target, values: Mapping[str, str]) -> Committed:
    """Set table properties; features they need are added to the protocol."""
    properties.check(values)
    for name, value in values.items():
        if name.startswith("delta.constraints."):
            raise InputError.bad_property(name, value, Action("add_constraint"))

    def change(base: Snapshot) -> Metadata:
        mode = values.get("delta.columnMapping.mode", base.mapping_mode)
        if mode != base.mapping_mode:
            raise InputError.bad_property("delta.columnMapping.mode", mode, "the mode the table was created with")
        return replace(base.state.metadata, configuration={**base.configuration, **values})

    return _run(target, "SET TBLPROPERTIES", {"properties": dict(values)}, change)


def unset_properties(target: Target, names: Sequence[str]) -> Committed:
    """Remove table properties."""
    for name in names:
        if name.startswith(("delta.columnMapping.", "delta.constraints.")):
            raise InputError.bad_argument("names", name, "a property that files do not depend on, and no constraint")

    def change(base: Snapshot) -> Metadata:
        kept = {k: v for k, v in base.configuration.items() if k not in names}
        return replace(base.state.metadata, configuration=kept)

    return _run(target, "UNSET TBLPROPERTIES", {"properties": list(names)}, change)


def add_constraint(target: Target, name: str, expression: str) -> Committed:
    """Add a CHECK constraint, after testing it on every row that is there."""
    key = f"delta.constraints.{name}"

    def change(base: Snapshot) -> Metadata:
        if key.lower() in {k.lower() for k in base.configuration}:
            raise InputError.bad_argument("name", name, "a name that no constraint has yet")
        parsed = expressions.parse_condition(expression, schema=base.arrow_schema)
        broken = 0
        for batch in scan(base, sorted({c for _, c in parsed.columns})):
            met = pc.fill_null(expressions.evaluate(parsed, pa.Table.from_batches([batch])), False)
            broken += batch.num_rows - (pc.sum(met).as_py() or 0)
        if broken:
            raise ConstraintError.check(name, expression, broken, base.where, adding=True)
        return replace(base.state.metadata, configuration={**base.configuration, key: expression})

    return _run(target, "ADD CONSTRAINT", {"name": name, "expr": expression}, change, reads=True)


def drop_constraint(target: Target, name: str) -> Committed:
    """Drop a CHECK constraint."""
    return _run(
        target,
        "DROP CONSTRAINT",
        {"name": name},
        lambda b: definition.drop_constraint(b.state.metadata, name, b.where),
    )
