"""Stages: what one job of a refresh has done, added up from the reports of its shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.incremental.dataflow.vertex import Exchange, Figures, Vertex
from headwater.incremental.manifest import RunEntry
from headwater.incremental.views.profile import Work, work_of

if TYPE_CHECKING:
    from headwater.incremental.views.spark.jobs import Cutting, Job
    from headwater.incremental.views.spark.written import Report

__all__ = ["Stage", "figures_of", "stage_of", "works_of"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one job has done, for people."""

    job: str
    tasks: int
    """How many tasks read."""
    shards: int
    rows_in: int
    """How many rows went through the exchange, if there was one, and in how many bytes."""
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
    runs = [run for report in reports for run in (*report.runs.values(), *report.merged.values())]
    opened = _opened(job, reports)
    left = [one for report in reports for one in report.left.values()]
    return Stage(
        job=what,
        tasks=1 if job.whole else len(job.shares),
        shards=job.shards,
        rows_in=sum(r.rows_in for r in reports),
        shuffled_bytes=sum(r.shuffled_bytes for r in reports),
        rows_out=sum(r.inserted + r.deleted for r in reports) + sum(rows for rows, _, _ in left),
        state_rows=sum(run[1] for run in runs),
        state_bytes=sum(run[2] for run in runs),
        seconds=round(seconds, 6),
        bytes_in=sum(size for r in reports for _, size, _ in r.scanned.values()),
        bytes_out=sum(add["size"] for r in reports for add in r.adds) + sum(size for _, _, size in left),
        state_rows_read=sum(run.rows for runs in opened.values() for run in runs),
        state_bytes_read=sum(run.nbytes for runs in opened.values() for run in runs),
    )


def _opened(job: Job, reports: Sequence[Report]) -> dict[str, list[RunEntry]]:
    """By traces: the runs that tasks opened, each once, since a machine has them once, however many tasks it runs."""
    found = {trace: {run.file: run for run in runs} for trace, runs in job.merges.items()}
    for trace in {name for report in reports for name in report.opened} & set(job.state.traces):
        found.setdefault(trace, {}).update({run.file: run for run in job.state.traces[trace].runs})
    return {trace: list(runs.values()) for trace, runs in found.items()}


def figures_of(made: Cutting, job: Job, reports: Sequence[Report]) -> dict[str, Figures]:
    """What each operator did in a job, by its fingerprint."""
    found: dict[str, Figures] = {}
    vertices = _vertices(made)
    for report in reports:
        for name, (steps, rows_in, rows_out, seconds) in report.figures.items():
            done = found.setdefault(name, Figures())
            done.steps += int(steps)
            done.rows_in += int(rows_in)
            done.rows_out += int(rows_out)
            done.seconds += seconds
        for name, (rows, size, steps) in report.scanned.items():
            done = found.setdefault(name, Figures())
            done.steps += steps
            done.rows_in += sum(report.scanned.get(made.names[v.id], (0, 0, 0))[0] for v in vertices[name].inputs)
            done.rows_out += rows
            done.bytes_in += size
        for feed, size in zip(job.feeds, report.arrived, strict=False):
            found.setdefault(made.names[feed.goal], Figures()).shuffled_bytes += size
    return found


def _vertices(made: Cutting) -> dict[str, Vertex]:
    """The operators, by their fingerprints."""
    return {made.names[v.id]: v for v in made.circuit.vertices if not isinstance(v.node, Exchange)}


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
    vertices = _vertices(made)
    found: dict[str, Work] = {}

    def of(owner: str) -> Work:
        return found.setdefault(owner, work_of(vertices, owner, "spark", stage.job))

    for name, done in figures_of(made, job, reports).items():
        work = of(name)
        work.steps, work.rows_in, work.rows_out, work.seconds = done.steps, done.rows_in, done.rows_out, done.seconds
        work.bytes_in, work.shuffled_bytes = done.bytes_in, done.shuffled_bytes
    for trace, runs in _opened(job, reports).items():
        for run in runs:
            of(trace.split("/", 1)[0]).read(run.rows, run.nbytes)
    for report in reports:
        for trace, (_, rows, size) in (*report.runs.items(), *report.merged.items()):
            of(trace.split("/", 1)[0]).wrote(rows, size)
    return [whole, *sorted(found.values(), key=lambda one: -one.seconds)]
