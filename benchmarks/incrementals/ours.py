"""Headwater on the feed: Arrow in, Arrow out, through `headwater.Circuit`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from incrementals.feed import Feed, as_answer
from queries.measuring import Sample

import headwater as hw

__all__ = ["Run", "build", "drive", "settle"]

_FOLD_EVERY = 500
_COLUMNS = ["g", "n", "s", "a", "mn", "mx"]


@dataclass
class Run:
    """What a competitor did with a feed: the first step by itself, the others, and the sum of all outputs."""

    answer: pa.Table
    first: Sample
    rest: Sample
    steps: list[float] = field(default_factory=list)
    profile: pa.Table | None = None


def build(feed: Feed) -> hw.Circuit:
    """The circuit, with the table of groups loaded."""
    circuit = hw.Circuit()
    events, groups = (circuit.input(n, s) for n, s in zip(("events", "groups"), feed.schemas, strict=True))
    joined = events.filter("v > 100").join(groups, "k")
    wanted = {"n": "count(*)", "s": "sum(v)", "a": "avg(v)", "mn": "min(v)", "mx": "max(v)"}
    joined.group_by("g").agg(**wanted).output("stats")
    circuit.step(groups=feed.table())
    return circuit


def settle(circuit: hw.Circuit) -> None:
    """Wait for merges in the background, so that the next run does not pay for them."""
    for trace in (t for v in circuit.vertices for node in v.nodes for t in node.traces().values()):
        trace.spine.settle()


def _added(parts: list[pa.Table]) -> pa.Table:
    whole = pa.concat_tables(parts, promote_options="default")
    added = whole.group_by(_COLUMNS, use_threads=False).aggregate([("_weight", "sum")])
    return added.filter(pc.field("_weight_sum") != 0).rename_columns([*_COLUMNS, "_weight"])


def _profile(circuit: hw.Circuit, before: pa.Table) -> pa.Table:
    """What operators took, less what loading the table of groups took."""
    spent = dict(zip(before["id"].to_pylist(), before["seconds"].to_pylist(), strict=True))
    now = circuit.profile()
    rest = [s - spent.get(i, 0.0) for i, s in zip(now["id"].to_pylist(), now["seconds"].to_pylist(), strict=True)]
    return now.set_column(now.schema.get_field_index("seconds"), "seconds", pa.array(rest)).sort_by(
        [("seconds", "descending")]
    )


def drive(feed: Feed, first: int, batch: int, *, settled: bool = False) -> Run:
    """Step through the feed; ``settled`` waits for merges after the first step, else their CPU time is in the rest's."""
    circuit = build(feed)
    before = circuit.profile()
    batches = feed.batches(first, batch)
    parts: list[pa.Table] = []
    steps: list[float] = []
    folding = 0.0
    start_cpu, first_sample = time.process_time(), Sample(0.0, 0.0)
    for number, rows in enumerate(batches):
        start = time.perf_counter()
        if rows.num_rows:
            parts.append(circuit.step(events=rows)["stats"].to_arrow())
        steps.append(time.perf_counter() - start)
        if not number:
            if settled:
                settle(circuit)
            first_sample = Sample(steps.pop(), time.process_time() - start_cpu)
            start_cpu = time.process_time()
        elif not number % _FOLD_EVERY:
            fold_cpu = time.thread_time()
            parts = [_added(parts)]
            folding += time.thread_time() - fold_cpu
    settle(circuit)
    rest = Sample(sum(steps), time.process_time() - start_cpu - folding)
    answer = _added(parts)
    assert all(w == 1 for w in answer["_weight"].to_pylist()), "a group has one row"
    return Run(as_answer(answer), first_sample, rest, steps, _profile(circuit, before))
