"""Stepping all of a circuit in one task, for changes of few rows.

An exchange asks every shard, whatever it sends, and each part of a circuit is one more job. State knows no shards: a
task can map all runs, of which it reads the pages that its rows touch. So where the rows of a change are no more than
one shard would get, one task reads them, steps the circuit as a process would, and publishes, in one job without a
shuffle. The runs that it writes are called as those of the first shard, and count by the same commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headwater.base import settings
from headwater.incremental.circuit import feeding
from headwater.incremental.views.spark import written
from headwater.incremental.views.spark.jobs import Job, Uncut, uncut
from headwater.incremental.views.spark.shares import Changes, gathered
from headwater.incremental.views.spark.written import Report
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["SteppingAll"]


@dataclass(frozen=True, slots=True)
class SteppingAll:
    """The one task of a whole job."""

    job: Job

    def __call__(self, number: int) -> Iterator[pa.Table]:
        assert number == 0, "there is one task"
        yield self.report().table()

    def report(self) -> Report:
        """Do it, and say what was written."""
        job, report, made = self.job, Report(0), uncut(self.job.definition)
        with settings.override(**job.settings):
            if job.merges:
                written.merge(job, made.circuit, made.names, report)
            given = self._given(made, report)
            report.rows_in = sum(map(len, given.values()))
            for vertex in made.cone.vertices:
                for name, trace in vertex.node.traces().items():
                    job.state.open(f"{made.names[vertex.id]}/{name}/0", trace)
                    report.opened.append(f"{made.names[vertex.id]}/{name}/0")
            found = made.cone.run(made.circuit, given)
            written.save(job, made.cone, made.names, report)
            written.publish(job, found[made.output.id], None, report)
        return report

    def _given(self, made: Uncut, report: Report) -> dict[int, ZSet]:
        """The changes of the sources, by the numbers of their vertices; they are counted in the report."""
        found: dict[int, list[ZSet]] = {}
        for share in self.job.shares:
            assert isinstance(share, Changes), "what steps at once are changes"
            source = made.circuit.inputs[share.relation]
            base, one = self.job.bases[share.relation], made.definition.inputs[share.relation]
            for rows in gathered(share.read(base, one)):
                (given,) = feeding.taken(source.node, rows)
                assert isinstance(given, ZSet)
                found.setdefault(source.id, []).append(given)
                had = report.scanned.get(made.names[source.id], (0, 0, 0))
                one_more = (len(given), rows.nbytes, 1)
                report.scanned[made.names[source.id]] = [a + b for a, b in zip(had, one_more, strict=True)]
        return {number: concatenate(some, made.circuit.vertices[number].layout) for number, some in found.items()}
