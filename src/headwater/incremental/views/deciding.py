"""Deciding: whether a refresh follows the changes, computes the view anew, or has nothing to do; and why.

Changes are followed wherever that is possible and not slower. Computing anew has to have a reason, which is told in the report; a view whose policy
is ``strict`` raises it as an error instead, except for its first rows.
"""

from __future__ import annotations

from headwater.base.errors import NotFoundError, UnsupportedError
from headwater.incremental.views import costs, output_table
from headwater.incremental.views.costs import RefreshPlan
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.record import Record
from headwater.incremental.views.sources import Sources, Unavailable
from headwater.lake import log
from headwater.lake.snapshot import Snapshot

__all__ = ["decide", "foreign"]


def decide(
    view: str, definition: Definition, record: Record, sources: Sources, *, full: bool = False, brief: bool = False
) -> RefreshPlan:
    """What a refresh to these sources has to do; ``brief`` leaves out figures that only people need."""
    policy, rates = definition.policy, record.rates
    total = 0 if brief else sources.total_rows()
    crossover = rates.crossover(total)

    def anew(reason: str, *, allowed: bool = True) -> RefreshPlan:
        if policy == "strict" and not allowed:
            raise UnsupportedError.recompute(view, reason)
        return RefreshPlan(
            mode="full", reason=reason, rows=total, full_seconds=rates.anew_seconds(total), crossover=crossover
        )

    if not record.published:
        if not sources.pinned and definition.sources:
            return RefreshPlan(mode="noop", reason="no source is named", crossover=crossover)
        return anew("it was never built")
    if full:
        return anew("it was asked for")
    if sources.frontier == record.frontier and not sources.replaced:
        return RefreshPlan(mode="noop", reason="nothing has changed", rows=total, crossover=crossover)
    if policy == "full":
        return anew("its policy is `full`")
    try:
        sources.check()
        changes = sources.changed_rows()
    except Unavailable as e:
        return anew(str(e), allowed=False)
    if record.state is None:
        return anew("it has no state yet", allowed=False)
    rows = sum(changes.values())
    if brief and rows >= costs.FLOOR_ROWS:
        total = sources.total_rows()
        crossover = rates.crossover(total)
    reason = f"{rows:,} {'row has' if rows == 1 else 'rows have'} changed"
    slower = policy == "auto" and rows >= crossover
    return RefreshPlan(
        mode="full" if slower else "incremental",
        reason=f"{reason}, and from {crossover:,} on computing it anew is quicker" if slower else reason,
        changes=changes,
        rows=total,
        incremental_seconds=rates.changes_seconds(rows),
        full_seconds=rates.anew_seconds(total),
        crossover=crossover,
    )


def foreign(base: Snapshot, definition: Definition, record: Record) -> str | None:
    """What others have done to a view's rows since its last refresh; None if nothing."""
    if not record.published or base.version == record.published:
        return None
    for version in range(record.published + 1, base.version + 1):
        try:
            commit = log.read_commit(base.storage, version, 0)
        except NotFoundError:
            return f"what version {version} did is not known any more"
        if commit.changes_data:
            return f"version {version} ({commit.operation}) changed its rows"
    if not output_table.same_columns(base.state.metadata, definition.schema):
        return "it has other columns"
    return None
