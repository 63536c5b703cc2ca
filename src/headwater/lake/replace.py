"""Replace: a new definition, and new rows, in the place of a table's old ones, by one commit to the same log.

Older versions stay readable under their own schema, and the protocol is never lowered.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.base.errors import InputError
from headwater.base.storage import now_ms
from headwater.lake import data_files, protocol, transaction
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.conflicts import Proposal
from headwater.lake.conform import Rows
from headwater.lake.snapshot import Snapshot, Target, resolve
from headwater.lake.transaction import Committed
from headwater.lake.write import check_definition, prepared

__all__ = ["replace_table"]


def replace_table(
    target: Target, metadata: Metadata, rows: Rows | None = None, *, if_version: int | None = None
) -> Committed:
    """Give the table at ``target`` this definition and these rows."""
    check_definition(metadata)
    first = resolve(target)
    storage = first.storage
    first.check_writable()
    planned = _planned(first, metadata)
    adds: list[AddFile] = []
    if rows is not None:
        fitted = prepared(rows, planned)
        adds = data_files.write_rows(storage, data_files.Layout(planned.state.metadata), fitted.batches)

    def operation(base: Snapshot) -> Proposal:
        if base.is_on("delta.appendOnly") and base.files:
            raise InputError.append_only(base.where)
        now = now_ms()
        needed = protocol.needed(planned.schema, planned.configuration)
        raised = protocol.with_features(base.state.protocol, needed)
        return Proposal(
            "CREATE OR REPLACE TABLE" if rows is None else "CREATE OR REPLACE TABLE AS SELECT",
            {"partitionBy": list(metadata.partition_columns)},
            adds=adds,
            removes=[f.removed(now) for f in base.files.values()],
            metadata=planned.state.metadata,
            protocol=None if raised == base.state.protocol else raised,
            metrics={"numFiles": len(adds), "numOutputRows": sum(f.num_records or 0 for f in adds)},
            reads=lambda _: True,
            yields_to_appends=False,
            keeps=frozenset(f.path for f in adds),
        )

    def undo() -> None:
        transaction.discard(storage, Proposal("", adds=adds))

    return transaction.run(first, operation, if_version=if_version, undo=undo)


def _planned(base: Snapshot, wanted: Metadata) -> Snapshot:
    """The snapshot under the new definition: the table keeps its id, and has no rows."""
    old = base.state.metadata
    metadata = replace(wanted, id=old.id, created_time=old.created_time)
    raised = protocol.with_features(base.state.protocol, protocol.needed(metadata.schema, metadata.configuration))
    return Snapshot(base.storage, replace(base.state, metadata=metadata, protocol=raised, files={}))
