"""What tasks do: read shares and send rows to shards; step a shard, write its state, and publish its rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.base import faults, settings
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.circuit import feeding
from headwater.incremental.circuit.parts import place_of
from headwater.incremental.dataflow.vertex import shard_of
from headwater.incremental.views.addresses import address
from headwater.incremental.views.spark import written
from headwater.incremental.views.spark.jobs import PUBLISHED, THERE, Cutting, Job, cutting, scanning
from headwater.incremental.views.spark.rows import by_row, scattered, schema_of, table_of, zset_of
from headwater.incremental.views.spark.shares import Left, Own, gathered, leave
from headwater.incremental.views.spark.written import Report
from headwater.incremental.zset import Positions, ZSet
from headwater.spark import blocks
from headwater.spark.figures import current

__all__ = ["Sending", "Stepping"]

_LEFT_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Sending:
    """The n-th task of a job reads its share, computes the goals that are scanned, and sends their rows to shards."""

    job: Job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[blocks.Sent]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if number < len(self.job.shares):
                    yield from self.sent(number)

    def sent(self, number: int) -> Iterator[blocks.Sent]:
        """The rows of a share, as the shards and sides that they go to."""
        with settings.override(**self.job.settings):
            yield from self._share(scanning(self.job.definition), number)

    def _share(self, made: Cutting, number: int) -> Iterator[blocks.Sent]:
        share = self.job.shares[number]
        if isinstance(share, Left):
            layout = made.circuit.vertices[share.goal].layout
            sides = [side for side, one in enumerate(self.job.feeds) if one.goal == share.goal and one.leaf != THERE]
            for shard, table in share.tables(self.job.root):
                if shard is None:
                    yield from self._sent(made, {share.goal: zset_of(layout, [table])}, number)
                elif shard not in self.job.finished:
                    yield shard, sides[0], table
            return
        if isinstance(share, Own):
            yield from self._there(made, share)
            return
        source = made.circuit.inputs[share.relation]
        wanted = {f.goal for f in self.job.feeds if f.goal in made.cut.scanned}
        cone = made.cut.scan([g for g in wanted if source in made.cut.scanned[g].leaves])
        base, one = self.job.bases[share.relation], made.definition.inputs[share.relation]
        for rows in gathered(share.read(base, one)):
            (given,) = feeding.taken(source.node, rows)
            assert isinstance(given, ZSet)
            had = [v.figures.rows_out for v in cone.vertices]
            found = cone.run(made.circuit, {source.id: given})
            _count(source.id, len(given), rows.nbytes)
            for vertex, before in zip(cone.vertices, had, strict=True):
                _count(vertex.id, vertex.figures.rows_out - before, 0)
            yield from self._sent(made, {source.id: given, **found}, number)

    def _there(self, made: Cutting, share: Own) -> Iterator[blocks.Sent]:
        """Rows that the view has, sent to where its rows are computed; where each lies stands for its weight."""
        assert self.job.publishing is not None
        layout, base = made.output.layout, self.job.publishing.base
        for number, batch in share.read(base, layout.names):
            rows = pa.Table.from_arrays(batch.columns[:-1], schema=layout.schema)
            there = ZSet.packed(layout, rows, address(number, batch.column(batch.num_columns - 1).to_numpy()))
            places = self._published(made, there)
            side = next(i for i, one in enumerate(self.job.feeds) if one.leaf == THERE)
            for shard, table in scattered(there, places, self.job.shards):
                if shard not in self.job.finished:
                    yield shard, side, table

    def _published(self, made: Cutting, rows: ZSet) -> Positions:
        """The shards in which rows of the view are published."""
        placed = made.output.placed_by
        if self.job.part is None or placed is None:
            return by_row(rows, self.job.shards)
        return shard_of(Arrangement(rows.layout, list(placed), keys=len(placed)), rows, self.job.shards)

    def _sent(self, made: Cutting, found: dict[int, ZSet], number: int) -> Iterator[blocks.Sent]:
        shards = self.job.shards
        for side, one in enumerate(self.job.feeds):
            rows = found.get(one.goal)
            if rows is None or not len(rows) or one.leaf == THERE:
                continue
            some = made.to_send(one.leaf, rows)
            places = places_for(made, one.leaf, some, shards, number)
            for shard, table in scattered(some, places, shards):
                if shard not in self.job.finished:
                    yield shard, side, table


def _count(vertex: int, rows: int, size: int) -> None:
    """Note what a task that reads did; it comes to the first shard with the blocks, of each task once."""
    figure = current().of(vertex)
    figure.rows += rows
    figure.bytes += size
    figure.tasks += 1


def places_for(made: Cutting, leaf: int, rows: ZSet, shards: int, spread: int) -> Positions:
    """The shards of rows that go to a leaf."""
    if leaf == PUBLISHED:
        return by_row(rows, shards)
    return place_of(made.circuit.vertices[leaf], rows, shards, spread)


@dataclass(frozen=True, slots=True)
class Stepping:
    """A task that has the rows of one shard."""

    job: Job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        layouts = scanning(self.job.definition).circuit.vertices
        arrived = blocks.Arrived(batches, [schema_of(layouts[f.goal].layout) for f in self.job.feeds])
        shuffled = [arrived.bytes(side) for side in range(len(self.job.feeds))]
        sides = [arrived.tables(side) for side in range(len(self.job.feeds))]
        report = self.report(blocks.task_number(), sides)
        report.shuffled_bytes, report.arrived = sum(shuffled), shuffled
        yield report.table()

    def report(self, shard: int, sides: Sequence[Iterable[pa.Table]]) -> Report:
        """What a shard writes, given the rows of each side."""
        job, report = self.job, Report(shard)
        if shard in job.finished:
            return report
        made = scanning(job.definition) if job.part is None else cutting(job.definition)
        with settings.override(**job.settings):
            given: dict[int, ZSet] = {}
            for one, tables in zip(job.feeds, sides, strict=True):
                given[one.leaf] = zset_of(made.circuit.vertices[one.goal].layout, tables)
            report.rows_in = sum(map(len, given.values()))
            if shard == 0:
                report.scanned = {made.names[v]: [f.rows, f.bytes, f.tasks] for v, f in current().found.items()}
            self._work(made, given, report)
        if job.journal is not None:
            faults.point("view.journal.before", f"{job.journal}{shard}")
            job.root.put(f"{job.journal}{shard:05d}.json", report.text().encode())
        return report

    def _work(self, made: Cutting, given: dict[int, ZSet], report: Report) -> None:
        job = self.job
        if job.merges:
            written.merge(job, made.circuit, made.names, report)
            return
        if job.part is None:
            written.publish(job, given[PUBLISHED], given.get(THERE), report)
            return
        there = given.pop(THERE, None)
        part = made.cut.parts[job.part]
        first = report.shard == 0
        has_rows = any(map(len, given.values())) or (there is not None and len(there) > 0)
        if not has_rows and not first:
            return
        for vertex in part.vertices:
            for name, trace in vertex.nodes[0 if first else 1].traces().items():
                job.state.open(f"{made.names[vertex.id]}/{name}/0", trace)
                report.opened.append(f"{made.names[vertex.id]}/{name}/0")
        if not has_rows and not part.has_work(first=True):
            return
        found = part.run(made.circuit, given, first=first)
        written.save(job, part, made.names, report, copy=0 if first else 1)
        for goal, leaf in job.leaves.items():
            if len(found[goal]):
                report.left[str(goal)] = self._left(made, goal, leaf, found[goal], report.shard)
        if job.publishing is not None:
            written.publish(job, found[made.output.id], there, report)

    def _left(self, made: Cutting, goal: int, leaf: int | None, rows: ZSet, shard: int) -> tuple[int, str, int]:
        path = f"{self.job.folder}/{goal}-{shard:05d}-{uuid.uuid4().hex[:12]}.arrow"
        pieces: list[tuple[int | None, pa.Table]]
        if leaf is None:
            starts = range(0, len(rows), _LEFT_ROWS)
            parts = (ZSet(rows.layout, rows.rows[start : start + _LEFT_ROWS], rows.owners) for start in starts)
            pieces = [(None, table_of(part)) for part in parts]
        else:
            some = made.to_send(leaf, rows)
            pieces = list(scattered(some, places_for(made, leaf, some, self.job.shards, shard), self.job.shards))
        leave(self.job.root, path, schema_of(rows.layout), pieces)
        return len(rows), path, rows.rows.nbytes
