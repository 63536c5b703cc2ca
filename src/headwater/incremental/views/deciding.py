"""Deciding: whether a refresh follows the changes, computes the view anew, or has nothing to do; and why.

Changes are followed wherever that is possible and, over time, not slower (`costs`). Computing anew has to have a
reason, which is told in the report; a view whose policy is ``strict`` raises it as an error instead, except for its
first rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.base.errors import UnsupportedError
from headwater.derived.foreign import changed_since
from headwater.derived.reports import Mode
from headwater.derived.sources import Sources, Unavailable
from headwater.incremental.views import costs, output_table
from headwater.incremental.views.costs import Choice, ViewPlan, Way
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.record import ViewRecord
from headwater.incremental.views.words import WORDS
from headwater.lake.snapshot import Snapshot

__all__ = ["after_upstream", "building_way", "decide", "foreign"]

_MODES: Mapping[Way, Mode] = {"changes": "incremental", "query": "full", "build": "full", "behind": "full"}
_NOTHING = "nothing has changed"
_NOTHING_OWED = f"{_NOTHING}; its state is being built"
_MUCH = 2.0  # a fan-out that is worth a word


def decide(
    view: str, definition: Definition, record: ViewRecord, sources: Sources, *, full: bool = False, brief: bool = False
) -> ViewPlan:
    """What a refresh to these sources has to do; ``brief`` leaves out figures that only people need."""
    policy, rates = definition.policy, record.rates
    total = 0 if brief else sources.total_rows()

    def planned(mode: Mode, reason: str, **more: Any) -> ViewPlan:
        return ViewPlan(
            mode=mode,
            reason=reason,
            rows=total,
            query_seconds=rates.queried_seconds(total),
            full_seconds=rates.anew_seconds(total),
            crossover=math.ceil(rates.crossover(total) / more.get("fan_out", 1.0)),
            **more,
        )

    def anew(reason: str, *, allowed: bool = True) -> ViewPlan:
        if policy == "strict" and not allowed:
            raise UnsupportedError.recompute(view, reason, WORDS)
        sources.check_columns()
        if policy == "full":
            return planned("full", reason, way="query")
        return planned("full", reason, way="build" if full else building_way(definition, record, sources))

    if not record.published:
        if not sources.pinned and definition.sources:
            return planned("noop", "no source is named")
        return anew("it was never built")
    if full:
        return anew("it was asked for")
    if sources.frontier == record.frontier and not sources.replaced:
        return planned("noop", _NOTHING_OWED if record.owed else _NOTHING)
    if policy == "full":
        return anew("its policy is `full`")
    try:
        changes = _changes(sources, brief=brief)
    except Unavailable as e:
        return anew(str(e), allowed=False)
    work = rates.work(changes)
    if record.state is None and record.owed:
        why = f"{_changed(changes, work)}, and its state is being built: a query meanwhile"
        return planned("full", why, changes=changes, way="behind", fan_out=_fan_out(changes, work))
    stateless = record.state is None and rates.stateless and policy == "auto"
    if record.state is None and not stateless:
        return anew("it has no state yet", allowed=False)
    asks = policy == "auto" and (work >= costs.FLOOR_ROWS or rates.lost_seconds > 0 or stateless)
    if brief and asks:
        total = sources.total_rows()
    choice = rates.choice(work, total) if asks else Choice("changes", 0.0)
    way = building_way(definition, record, sources) if choice.way == "build" else choice.way
    return planned(
        _MODES[way],
        _because(_changed(changes, work), way, stateless=stateless),
        changes=changes,
        incremental_seconds=rates.changes_seconds(work),
        way=way,
        lost_seconds=choice.lost_seconds,
        fan_out=_fan_out(changes, work),
    )


def _changes(sources: Sources, *, brief: bool) -> Mapping[str, int]:
    """How many rows of each source have changed; raises `Unavailable`."""
    sources.check()
    if not brief:  # a refresh finds out when it reads them
        sources.check_files()
    return sources.changed_rows()


def building_way(definition: Definition, record: ViewRecord, sources: Sources) -> Way:
    """How state is built: before rows are published, or behind rows that a query gives."""
    behind = definition.shards == 1 and record.rates.goes_behind(sources.total_rows())
    return "behind" if behind else "build"


def _fan_out(changes: Mapping[str, int], work: int) -> float:
    return work / max(1, sum(changes.values())) if work else 1.0


def _changed(changes: Mapping[str, int], work: int) -> str:
    rows = sum(changes.values())
    reason = f"{rows:,} {'row has' if rows == 1 else 'rows have'} changed"
    return f"{reason}, which come to {work:,} rows of joins" if _fan_out(changes, work) >= _MUCH else reason


def _because(reason: str, way: Way, *, stateless: bool) -> str:
    if way == "changes":
        return reason
    if way == "query":
        return f"{reason}, and {'still ' if stateless else ''}a query is quicker than keeping its state"
    why = "small changes are worth a state again" if stateless else "computing it anew is quicker"
    behind = ": by a query, with its state built behind" if way == "behind" else ""
    return f"{reason}, and {why}{behind}"


def after_upstream(plan: ViewPlan, definition: Definition, first: Sequence[str]) -> ViewPlan:
    """The plan of a refresh that follows those of views that it reads: what they will change is not known yet."""
    named = ", ".join(f"`{one}`" for one in first)
    if plan.mode != "noop":
        return replace(plan, reason=f"{plan.reason}; {named} will be refreshed first")
    full = definition.policy == "full"
    reason = f"{named} will be refreshed first, and what changes there is not known yet"
    return replace(plan, mode="full" if full else "incremental", way="query" if full else "changes", reason=reason)


def foreign(base: Snapshot, definition: Definition, record: ViewRecord) -> str | None:
    """What others have done to a view's rows since its last refresh; None if nothing."""
    what = changed_since(base, record.published)
    if what is not None or not record.published or base.version == record.published:
        return what
    if not output_table.same_columns(base.state.metadata, definition.schema):
        return "it has other columns"
    return None
