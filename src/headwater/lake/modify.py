"""Delete and update: find the rows, mark them, write what replaces them.

Both cost the rows they touch: the condition is answered with the columns it names, and full rows are read only
where they change. If the table has a change data feed, the rows before and after go into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.base.errors import ExpressionError, InputError
from headwater.lake import data_files, edit, find, transaction
from headwater.lake.addressed import Located
from headwater.lake.conflicts import Proposal
from headwater.lake.conform import Rows
from headwater.lake.scan import Positions
from headwater.lake.snapshot import Snapshot, Target
from headwater.lake.transaction import Committed
from headwater.lake.write import prepared
from headwater.sql import expressions
from headwater.sql.expressions import Expression
from headwater.sql.fragment import Fragment, spelled

__all__ = ["FoundRows", "assigned", "check_may_change", "delete", "parse_assignments", "reads_of", "update"]

FoundRows = Callable[[Snapshot], Located]


def reads_of(base: Snapshot, wanted: Expression | None) -> Any:
    """Tells whether new files may hold rows that an operation on ``wanted`` would have touched."""
    conjuncts = wanted.conjuncts() if wanted is not None else ()
    return lambda files: bool(find.candidate_files(base, conjuncts, files))


def check_may_change(base: Snapshot) -> None:
    if base.is_on("delta.appendOnly"):
        raise InputError.append_only(base.where)


def delete(
    target: Target,
    where: str | Fragment | None = None,
    *,
    alias: str | None = None,
    found: FoundRows | None = None,
    if_version: int | None = None,
) -> Committed:
    """Delete the rows that meet ``where``, or all.

    A condition that looks at more than one row of one table is answered by ``found``, which gives the addresses of the
    rows in a snapshot.
    """
    operation = partial(_delete, where=where, alias=alias, found=found)
    return transaction.run(target, operation, if_version=if_version)


def _delete(
    base: Snapshot, where: str | Fragment | None, alias: str | None = None, found: FoundRows | None = None
) -> Proposal:
    check_may_change(base)
    if found is not None:
        rows: dict[str, Positions | None] = dict(found(base).positions())
        reads: Any = _every_file
    else:
        wanted = find.condition(base, where, alias)
        rows, reads = find.find_rows(base, wanted), reads_of(base, wanted)
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
        {"predicate": spelled(where)},
        adds=cut.adds,
        removes=cut.removes,
        cdc=cdc,
        metrics=cut.metrics,
        reads=reads,
    )


def update(
    target: Target,
    assignments: Mapping[str, str | Fragment],
    where: str | Fragment | None = None,
    *,
    alias: str | None = None,
    found: FoundRows | None = None,
    if_version: int | None = None,
) -> Committed:
    """Set columns to expressions in the rows that meet ``where``, or in all; ``found`` gives them with their values."""
    if not assignments:
        raise InputError.bad_argument("assignments", {}, "at least one column to set")
    operation = partial(_update, assignments=assignments, where=where, alias=alias, found=found)
    return transaction.run(target, operation, if_version=if_version)


def _update(
    base: Snapshot,
    assignments: Mapping[str, str | Fragment],
    where: str | Fragment | None,
    alias: str | None = None,
    found: FoundRows | None = None,
) -> Proposal:
    check_may_change(base)
    if found is not None:
        names = [settable(base, column, text) for column, text in assignments.items()]
        located = found(base)
        rows: dict[str, Positions | None] = dict(located.positions())
        before = find.fetch(base, rows)
        values = dict(zip(names, located.values(), strict=True))
        after = pa.table({f.name: values.get(f.name, before[f.name]) for f in base.schema.fields if not f.generation})
        reads: Any = _every_file
    else:
        wanted = find.condition(base, where, alias)
        parsed = parse_assignments(base, assignments, None if alias is None else {alias: base.arrow_schema})
        rows, reads = find.find_rows(base, wanted), reads_of(base, wanted)
        before = find.fetch(base, rows)
        after = assigned(before, parsed, base)
    if not rows:
        return Proposal("UPDATE", metrics={"numUpdatedRows": 0})
    fitted = prepared(Rows(after.schema, iter(after.to_batches())), base).to_table()
    adds = data_files.write_rows(base.storage, data_files.Layout(base.state.metadata), fitted.to_batches())
    cut = edit.remove_rows(base, rows)
    return Proposal(
        "UPDATE",
        {"predicate": spelled(where)},
        adds=cut.adds + adds,
        removes=cut.removes,
        cdc=data_files.change_feed(
            base.state.metadata, base.storage, {"update_preimage": before, "update_postimage": fitted}
        ),
        metrics={**cut.metrics, "numUpdatedRows": fitted.num_rows, "numAddedFiles": len(adds)},
        reads=reads,
    )


def _every_file(_: Any) -> bool:
    """A condition that looks at other rows too may be changed by any row that comes."""
    return True


def parse_assignments(
    base: Snapshot, assignments: Mapping[str, str | Fragment], schemas: Mapping[str, pa.Schema] | None = None
) -> dict[str, Expression]:
    """SET expressions by the column's name in the table."""
    schema = base.arrow_schema if schemas is None else schemas
    return {
        settable(base, column, text): expressions.parse(text, schema=schema) for column, text in assignments.items()
    }


def settable(base: Snapshot, column: str, text: str | Fragment) -> str:
    """The name in the table of a column that may be set to ``text``."""
    f = base.schema.field(column, base.where)
    if f.generation:
        raise ExpressionError.not_known(str(text), f"setting the generated column `{f.name}`", "leave it out")
    if not isinstance(text, str | Fragment):
        raise InputError.bad_argument(column, text, 'SQL text, such as "\'new\'" or "amount * 2"')
    return f.name


def assigned(before: pa.Table, parsed: Mapping[str, Expression], base: Snapshot) -> pa.Table:
    """``before`` with columns set; generated columns are left out, to be computed anew."""
    computed = {name: expressions.evaluate(e, before) for name, e in parsed.items()}
    columns = {f.name: computed.get(f.name, before[f.name]) for f in base.schema.fields if not f.generation}
    return pa.table(columns)
