"""The table of a view: its columns and properties, its first commit, and the commits of refreshes.

It is an ordinary Delta table, with deletion vectors and a change feed, and two domains in its log
(`headwater.lake.published`). Columns that have no proper name (``count(1)``) get one inside the files by column
mapping. Every commit is made on the version that it was worked out for; whoever comes second is told so, and begins
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.base.errors import InputError, did_you_mean
from headwater.base.schema import Schema
from headwater.base.storage import Storage
from headwater.incremental.views.ddl import POLICY, SHARDS
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.record import ViewRecord
from headwater.incremental.views.words import WORDS
from headwater.lake import protocol, published, transaction
from headwater.lake.actions import Metadata
from headwater.lake.conflicts import Proposal
from headwater.lake.definition import define
from headwater.lake.published import Changed
from headwater.lake.snapshot import Snapshot
from headwater.lake.transaction import Committed

__all__ = [
    "Told",
    "changed_metadata",
    "check_properties",
    "commit",
    "create",
    "metadata_for",
    "redefine",
    "same_columns",
]

_MAPPING = "delta.columnMapping.mode"
_LAST_ID = "delta.columnMapping.maxColumnId"
_UNNAMED = set(" ,;{}()\n\t=")
_ALWAYS = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
_FEATURES = ("deletionVectors", "changeDataFeed", "domainMetadata")


def metadata_for(
    name: str,
    schema: pa.Schema,
    *,
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    old: Metadata | None = None,
) -> Metadata:
    """The metadata of a view's table with these columns; ``old`` is what it had before."""
    configuration = {**_ALWAYS, **(properties or {})}
    if any(_UNNAMED & set(n) for n in schema.names) or (old is not None and _MAPPING in old.configuration):
        last = old.configuration.get(_LAST_ID, "0") if old is not None else "0"
        configuration |= {_MAPPING: "name", _LAST_ID: last}
    made = define(schema, table_properties=configuration, name=name, description=comment)
    return made if old is None else replace(made, id=old.id, created_time=old.created_time)


@dataclass(frozen=True, slots=True)
class Told:
    """What a definition says about its table; where it does not speak ``wholly``, what it leaves out stays as it is."""

    properties: Mapping[str, str] | None = None
    comment: str | None = None
    wholly: bool = False


def changed_metadata(name: str, schema: pa.Schema, old: Metadata, told: Told) -> Metadata | None:
    """The metadata of a view's table with other columns, properties or another comment;
    None if nothing is different.
    """
    given = dict(told.properties or {})
    mode = given.pop(_MAPPING, old.configuration.get(_MAPPING))
    if mode != old.configuration.get(_MAPPING):
        raise InputError.bad_property(_MAPPING, str(mode), "the mode the table was created with")
    needed = {k: v for k, v in old.configuration.items() if k in (_MAPPING, _LAST_ID) or k in _ALWAYS}
    kept = {} if told.wholly else {k: v for k, v in old.configuration.items() if k not in needed}
    comment = told.comment if told.wholly or told.comment is not None else old.description
    if not same_columns(old, schema):
        return metadata_for(name, schema, properties={**kept, **given}, comment=comment, old=old)
    made = replace(old, configuration={**needed, **kept, **given}, description=comment)
    return None if made == old else made


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise for a property that a view's table cannot have."""
    published.check_properties(properties)
    for name, value in properties.items():
        if name.startswith("headwater."):
            near = did_you_mean(name, (POLICY, SHARDS))
            known = f"a known property{f': did you mean {near}?' if near else ''}"
            raise InputError.bad_property(name, value, known)


def same_columns(metadata: Metadata, schema: pa.Schema) -> bool:
    """Whether a table has just these columns."""
    have = metadata.schema
    return [(f.name, f.type) for f in have.fields] == [(f.name, f.type) for f in Schema.from_arrow(schema).fields]


def create(storage: Storage, metadata: Metadata, definition: Definition) -> Committed | None:
    """Make the table of a view that is not built yet; None if there is a table already."""
    needed = protocol.for_table(metadata.schema, metadata.configuration)
    return transaction.create(
        storage,
        Proposal(
            "CREATE MATERIALIZED VIEW",
            {"query": definition.sql},
            metadata=metadata,
            protocol=protocol.with_features(needed, _FEATURES),
            domains=[definition.action()],
        ),
    )


def redefine(base: Snapshot, definition: Definition, metadata: Metadata | None) -> Committed:
    """Commit another definition of a view whose rows, if it has any, stay what they are."""
    features = protocol.needed(metadata.schema, metadata.configuration) if metadata else set()
    raised = protocol.with_features(base.state.protocol, {*_FEATURES, *features})
    proposal = Proposal(
        "REPLACE MATERIALIZED VIEW",
        {"query": definition.sql},
        metadata=metadata,
        protocol=None if raised == base.state.protocol else raised,
        domains=[definition.action()],
    )
    return transaction.run(base.storage, lambda _: proposal, if_version=base.version)


def commit(
    base: Snapshot,
    operation: str,
    changed: Changed,
    record: ViewRecord,
    *,
    definition: Definition | None = None,
    metadata: Metadata | None = None,
    ready: Callable[[], object] | None = None,
) -> Committed:
    """Commit a change of rows with what they reflect, on ``base`` and nothing else; or raise ConflictError.

    ``ready`` is called before that is so, and returns when the state is saved that the record names (`Proposal.ready`).
    A checkpoint of the log that is due then is left to be written.
    """
    assert record.published == base.version + 1, "a record names the version that it is a part of"
    features = protocol.needed(metadata.schema, metadata.configuration) if metadata else set()
    raised = protocol.with_features(base.state.protocol, {*_FEATURES, *features})
    reflects = published.domain(published.state_domain(WORDS.name), record.to_json())
    proposal = Proposal(
        operation,
        {"frontier": str(record.frontier)},
        adds=changed.adds,
        removes=changed.removes,
        cdc=changed.cdc,
        metadata=metadata,
        protocol=None if raised == base.state.protocol else raised,
        domains=[reflects] if definition is None else [definition.action(), reflects],
        metrics={"numInsertedRows": changed.inserted, "numDeletedRows": changed.deleted},
        reads=lambda _: True,
        yields_to_appends=False,
        unflushed=changed.unflushed,
        ready=ready,
    )
    return transaction.run(base.storage, lambda _: proposal, if_version=base.version, checkpoints=False)
