"""Stages: what one job of a refresh has done, added up from the reports of its shards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.incremental.dataflow.vertex import Exchange, Figures
from headwater.incremental.manifest import RunEntry
from headwater.incremental.views.profile import Work, work_of

if TYPE_CHECKING:
    from headwater.incremental.views.spark.jobs import Cutting, Job
    from headwater.incremental.views.spark.tasks import Report

__all__ = ["Stage", "figures_of", "stage_of", "works_of"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one job has done, for people."""

    job: str
    tasks: int
    """How many tasks read."""
    shards: int
    rows_in: int
    """How many rows went through the exchange, and in how many bytes."""
    shuffled_bytes: int
    rows_out: int
    """How many rows were left for later jobs, or published."""
    state_rows: int
    """How many rows of state were written, and in how many bytes."""
    state_bytes: int
    seconds: float
    bytes_in: int = 0
    """How large the rows are that were read of the sources."""
    bytes_out: int = 0
    """How large the files are in which rows were left or published."""
    state_rows_read: int = 0
    """How many rows the run files have that were opened, and how large these are."""
    state_bytes_read: int = 0


def stage_of(what: str, job: Job, reports: Sequence[Report], seconds: float) -> Stage:
    """A job, by the reports of all its shards."""
    runs = [run for report in reports for run in report.runs.values()]
    opened = _opened(job, {name for report in reports for name in report.opened} | set(job.merges))
    left = [one for report in reports for one in report.left.values()]
    return Stage(
        job=what,
        tasks=len(job.shares),
        shards=job.shards,
        rows_in=sum(r.rows_in for r in reports),
        shuffled_bytes=sum(r.shuffled_bytes for r in reports),
        rows_out=sum(r.inserted + r.deleted for r in reports) + sum(rows for rows, _, _ in left),
        state_rows=sum(run[1] for run in runs),
        state_bytes=sum(run[2] for run in runs),
        seconds=round(seconds, 6),
        bytes_in=sum(size for r in reports for _, size, _ in r.scanned.values()),
        bytes_out=sum(add["size"] for r in reports for add in r.adds) + sum(size for _, _, size in left),
        state_rows_read=sum(run.rows for run in opened),
        state_bytes_read=sum(run.nbytes for run in opened),
    )


def _opened(job: Job, traces: Iterable[str]) -> list[RunEntry]:
    """The runs of traces that tasks opened, each once: a machine has them once, however many tasks it runs."""
    found: dict[str, RunEntry] = {}
    for name in traces:
        entry = job.state.traces.get(name)
        runs = job.merges.get(name) or (() if entry is None else entry.runs)
        found |= {run.file: run for run in runs}
    return list(found.values())


def figures_of(made: Cutting, job: Job, reports: Sequence[Report]) -> dict[str, Figures]:
    """What each operator did in a job, by its fingerprint."""
    found: dict[str, Figures] = {}
    for report in reports:
        for name, (steps, rows_in, rows_out, seconds) in report.figures.items():
            done = found.setdefault(name, Figures())
            done.steps += int(steps)
            done.rows_in += int(rows_in)
            done.rows_out += int(rows_out)
            done.seconds += seconds
        for number, (rows, size, steps) in report.scanned.items():
            vertex = made.circuit.vertices[int(number)]
            done = found.setdefault(made.names[vertex.id], Figures())
            done.steps += steps
            done.rows_in += sum(report.scanned.get(str(v.id), (0, 0, 0))[0] for v in vertex.inputs)
            done.rows_out += rows
            done.bytes_in += size
        for feed, size in zip(job.feeds, report.arrived, strict=False):
            found.setdefault(made.names[feed.goal], Figures()).shuffled_bytes += size
    return found


def works_of(made: Cutting, job: Job, stage: Stage, reports: Sequence[Report]) -> list[Work]:
    """The stage and its operators, for a profile; the slowest operator first."""
    whole = Work(
        engine="spark",
        stage=stage.job,
        steps=1,
        rows_in=stage.rows_in,
        bytes_in=stage.bytes_in,
        shuffled_bytes=stage.shuffled_bytes,
        rows_out=stage.rows_out,
        bytes_out=stage.bytes_out,
        state_rows_read=stage.state_rows_read,
        state_bytes_read=stage.state_bytes_read,
        state_rows_written=stage.state_rows,
        state_bytes_written=stage.state_bytes,
        seconds=stage.seconds,
    )
    vertices = {made.names[v.id]: v for v in made.circuit.vertices if not isinstance(v.node, Exchange)}
    found: dict[str, Work] = {}

    def of(owner: str) -> Work:
        return found.setdefault(owner, work_of(vertices, owner, "spark", stage.job))

    for name, done in figures_of(made, job, reports).items():
        work = of(name)
        work.steps, work.rows_in, work.rows_out, work.seconds = done.steps, done.rows_in, done.rows_out, done.seconds
        work.bytes_in, work.shuffled_bytes = done.bytes_in, done.shuffled_bytes
    for trace in {name for report in reports for name in report.opened} | set(job.merges):
        for run in _opened(job, [trace]):
            of(trace.split("/", 1)[0]).read(run.rows, run.nbytes)
    for report in reports:
        for trace, (_, rows, size) in report.runs.items():
            of(trace.split("/", 1)[0]).wrote(rows, size)
    return [whole, *sorted(found.values(), key=lambda one: -one.seconds)]
