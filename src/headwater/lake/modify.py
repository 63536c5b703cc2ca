"""Delete and update: find the rows, mark them, write what replaces them.

Both cost the rows they touch: the condition is answered with the columns it names, and full rows are read only
where they change. If the table has a change data feed, the rows before and after go into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.base.errors import ExpressionError, InputError
from headwater.base.storage import Storage
from headwater.lake import data_files, edit, find, transaction
from headwater.lake.conflicts import Proposal
from headwater.lake.conform import Rows
from headwater.lake.snapshot import Snapshot
from headwater.lake.transaction import Committed
from headwater.lake.write import prepared
from headwater.sql import expressions
from headwater.sql.expressions import Expression

__all__ = ["assigned", "check_may_change", "delete", "parse_assignments", "reads_of", "update"]


def reads_of(base: Snapshot, wanted: Expression | None) -> Any:
    """Tells whether new files may hold rows that an operation on ``wanted`` would have touched."""
    conjuncts = wanted.conjuncts() if wanted is not None else ()
    return lambda files: bool(find.candidate_files(base, conjuncts, files))


def check_may_change(base: Snapshot) -> None:
    if base.is_on("delta.appendOnly"):
        raise InputError.append_only(base.where)


def delete(storage: Storage, where: str | None = None, *, if_version: int | None = None) -> Committed:
    """Delete the rows that meet ``where``, or all."""
    return transaction.run(storage, partial(_delete, where=where), if_version=if_version)


def _delete(base: Snapshot, where: str | None) -> Proposal:
    check_may_change(base)
    wanted = find.condition(base, where)
    rows = find.find_rows(base, wanted)
    cut = edit.remove_rows(base, rows)
    # Whole files that go need no feed entry of their own: readers of the feed read the removed file.
    partial_change = any(positions is not None for positions in rows.values())
    cdc = (
        data_files.change_feed(base.state.metadata, base.storage, {"delete": find.fetch(base, rows)})
        if cut.removes and partial_change
        else []
    )
    return Proposal(
        "DELETE",
        {"predicate": where or "true"},
        adds=cut.adds,
        removes=cut.removes,
        cdc=cdc,
        metrics=cut.metrics,
        reads=reads_of(base, wanted),
    )


def update(
    storage: Storage, assignments: Mapping[str, str], where: str | None = None, *, if_version: int | None = None
) -> Committed:
    """Set columns to expressions in the rows that meet ``where``, or in all."""
    if not assignments:
        raise InputError.bad_argument("assignments", {}, "at least one column to set")
    return transaction.run(storage, partial(_update, assignments=assignments, where=where), if_version=if_version)


def _update(base: Snapshot, assignments: Mapping[str, str], where: str | None) -> Proposal:
    check_may_change(base)
    wanted = find.condition(base, where)
    parsed = parse_assignments(base, assignments)
    rows = find.find_rows(base, wanted)
    if not rows:
        return Proposal("UPDATE", metrics={"numUpdatedRows": 0})
    before = find.fetch(base, rows)
    after = assigned(before, parsed, base)
    fitted = prepared(Rows(after.schema, iter(after.to_batches())), base).to_table()
    adds = data_files.write_rows(base.storage, data_files.Layout(base.state.metadata), fitted.to_batches())
    cut = edit.remove_rows(base, rows)
    return Proposal(
        "UPDATE",
        {"predicate": where or "true"},
        adds=cut.adds + adds,
        removes=cut.removes,
        cdc=data_files.change_feed(
            base.state.metadata, base.storage, {"update_preimage": before, "update_postimage": fitted}
        ),
        metrics={**cut.metrics, "numUpdatedRows": fitted.num_rows, "numAddedFiles": len(adds)},
        reads=reads_of(base, wanted),
    )


def parse_assignments(base: Snapshot, assignments: Mapping[str, str], **schemas: pa.Schema) -> dict[str, Expression]:
    """SET expressions by the column's name in the table."""
    parsed = {}
    for column, text in assignments.items():
        f = base.schema.field(column, base.where)
        if f.generation:
            raise ExpressionError.not_known(text, f"setting the generated column `{f.name}`", "leave it out")
        if not isinstance(text, str):
            raise InputError.bad_argument(column, text, 'SQL text, such as "\'new\'" or "amount * 2"')
        parsed[f.name] = expressions.parse(text, schema=schemas or base.arrow_schema)
    return parsed


def assigned(before: pa.Table, parsed: Mapping[str, Expression], base: Snapshot) -> pa.Table:
    """``before`` with columns set; generated columns are left out, to be computed anew."""
    computed = {name: expressions.evaluate(e, before) for name, e in parsed.items()}
    columns = {f.name: computed.get(f.name, before[f.name]) for f in base.schema.fields if not f.generation}
    return pa.table(columns)
