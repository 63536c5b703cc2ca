"""Running the jobs of a refresh: one for each part of the view's circuit, and one more where its rows have to move to
be published; or a single job of one task, where changes are one shard's work (`whole`).

The driver decides what is read, and gets names. It never has rows: of those that go it has a bitmap for each file, at
most a bit for each row of the view. Nothing that was written counts before the caller commits; `Outcome` is what a
commit needs.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyroaring import BitMap64

from headwater.base import events, settings
from headwater.base.boot import boot_id
from headwater.base.errors import CorruptionError, StorageError
from headwater.derived.sources import Sources
from headwater.incremental.circuit import durable
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.dataflow.vertex import Exchange, Figures
from headwater.incremental.manifest import Manifest, RunEntry, TraceEntry
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.live import built
from headwater.incremental.views.profile import Work
from headwater.incremental.views.publishing import VECTORS
from headwater.incremental.views.record import StateAt
from headwater.incremental.views.spark.held_state import HeldState
from headwater.incremental.views.spark.jobs import PUBLISHED, THERE, Cutting, Feed, Job, Publishing, scanning
from headwater.incremental.views.spark.journal import Goal, Journal
from headwater.incremental.views.spark.merges import due, is_light, shards_for
from headwater.incremental.views.spark.places import Place
from headwater.incremental.views.spark.shares import Share, of_changes, of_files, of_left, of_view
from headwater.incremental.views.spark.stages import Stage, figures_of, stage_of, works_of
from headwater.incremental.views.spark.written import Report
from headwater.incremental.views.state_folder import SCRATCH, ViewFolder
from headwater.lake import deletion_vectors, partitions
from headwater.lake.actions import AddFile
from headwater.lake.edit import removal
from headwater.lake.published import Changed
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.tasks import without_files

__all__ = ["Outcome", "run"]

_PASSED_ON = (
    "fsync",
    "spill_dir",
    "parquet_compression",
    "row_group_rows",
    "target_file_bytes",
    "state_memory_bytes",
)
_MOST_ALIKE = 6
"""So many runs of about one size may a trace have for each shard."""
_NUMBERS = 64
"""So many files may a shard write in one refresh."""


@dataclass(slots=True)
class Outcome:
    """What a refresh by tasks has written, to be committed."""

    changed: Changed
    manifest: Manifest
    stages: list[Stage] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    """The same with the operators of each job."""
    taken_over: int = 0
    """How many shards of jobs were done by a build that did not end."""


@dataclass(slots=True)
class _Run:
    """One refresh: from the changes of its sources on the state of ``before``, or from all of their rows."""

    view: str
    definition: Definition
    base: Snapshot
    sources: Sources
    place: Place
    folder: ViewFolder
    before: Manifest | None
    shards: int
    made: Cutting
    journal: Journal | None
    addresses: Addresses
    """The files of the view, by their numbers; their rows' addresses are the tasks' affair."""
    reports: list[Report] = field(default_factory=list)
    left: dict[int, dict[str, int]] = field(default_factory=dict)
    """By goal: the files in which rows were left, with their sizes."""
    stages: list[Stage] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    """The same with the operators of each job."""
    figures: dict[str, Figures] = field(default_factory=dict)
    taken_over: int = 0
    """How many shards of jobs were done by a build that did not end."""
    merged: dict[str, list[RunEntry]] = field(default_factory=dict)
    replaced: dict[str, set[str]] = field(default_factory=dict)
    """By trace: the files of runs that `merged` takes the place of."""

    @property
    def _scratch(self) -> str:
        if self.journal is not None:
            return self.journal.path
        return f"{self.folder.path}/{SCRATCH}/{self.base.version + 1:012d}"

    @property
    def _epoch(self) -> int:
        return 1 if self.before is None else self.before.epoch + 1

    def run(self) -> None:
        """Run all jobs."""
        if self._is_whole:
            self._whole()
            return
        cut, output = self.made.cut, self.made.output.id
        later: dict[int, set[int]] = {}
        for part in cut.parts:
            for v in part.leaves:
                if isinstance(v.node, Exchange):
                    # Two parts may need the same rows, and then read the same files.
                    later.setdefault(v.inputs[0].id, set()).add(v.id)
        if not self.made.is_placed:
            later.setdefault(output, set()).add(PUBLISHED)
        for number, part in enumerate(cut.parts):
            feeds = tuple(Feed(v.id, v.inputs[0].id if isinstance(v.node, Exchange) else v.id) for v in part.leaves)
            own = {v.id for v in part.goals}
            publishes = output in own and self.made.is_placed
            feeds += self._there() if publishes else ()
            left = {goal: min(later[goal]) if len(later[goal]) == 1 else None for goal in sorted(own & set(later))}
            self._job(f"part {number + 1} of {len(cut.parts)}", number, feeds, left, publishes=publishes)
        if not self.made.is_placed:
            self._job("publish", None, (Feed(PUBLISHED, output), *self._there()), {}, publishes=True)

    @property
    def _is_whole(self) -> bool:
        """Whether changes go to one shard, which then needs no exchange."""
        return self.shards == 1 and self.before is not None

    def _whole(self) -> None:
        """Let one task step everything, and merge runs beside it where that is little work."""
        shares = self._shares({v.id for v in self.made.circuit.inputs.values()})
        job = self._described(None, (), tuple(shares), {}, publishes=True)
        merges = {name: some for name, some in self._due().items() if is_light(some)}
        self.reports += self._done(replace(job, whole=True, merges=merges), "whole circuit")
        self._replace(merges, self.reports)

    def _there(self) -> tuple[Feed, ...]:
        """The rows that the view has, where a result that was computed from scratch is held against them."""
        return (Feed(THERE, self.made.output.id),) if self.before is None and self.base.files else ()

    def merge(self) -> None:
        """Merge runs, where a trace has many of about one size; the one task of the next change does what is little."""
        merges = {
            name: some
            for name, some in self._due().items()
            if name not in self.replaced and not (self._is_whole and is_light(some))
        }
        if not merges:
            return
        shards = shards_for(merges.values(), self.shards)
        job = replace(self._described(None, (), (), {}, publishes=False), shards=shards, merges=merges)
        self._replace(merges, self._done(job, "merge runs"))

    def _due(self) -> dict[str, tuple[RunEntry, ...]]:
        found = {name: due(some, _MOST_ALIKE, self.shards) for name, some in self._runs().items()}
        return {name: some for name, some in found.items() if some}

    def _replace(self, merges: Mapping[str, Sequence[RunEntry]], reports: Sequence[Report]) -> None:
        for report in reports:
            for name, (file, rows, size) in report.merged.items():
                self.merged.setdefault(name, []).append(RunEntry(file, rows, size))
        self.replaced |= {name: {run.file for run in some} for name, some in merges.items()}

    def _runs(self) -> dict[str, tuple[RunEntry, ...]]:
        """All runs of each trace, with those that were written."""
        found = {name: entry.runs for name, entry in self._traces().items() if entry.bound is None}
        for report in self.reports:
            for name, (file, rows, size) in report.runs.items():
                found[name] = (*found.get(name, ()), RunEntry(file, rows, size))
        return found

    def _job(
        self, what: str, part: int | None, feeds: tuple[Feed, ...], left: Mapping[int, int | None], *, publishes: bool
    ) -> None:
        shares = self._shares({f.goal for f in feeds if f.leaf != THERE})
        if any(f.leaf == THERE for f in feeds):
            shares += of_view(self.addresses.files, self.base.files, self.place.tasks)
        reports = self._done(self._described(part, feeds, tuple(shares), left, publishes=publishes), what)
        for report in reports:
            for goal, (_, path, size) in report.left.items():
                self.left.setdefault(int(goal), {})[path] = size
        self.reports += reports

    def _described(
        self,
        part: int | None,
        feeds: tuple[Feed, ...],
        shares: tuple[Share, ...],
        left: Mapping[int, int | None],
        *,
        publishes: bool,
    ) -> Job:
        chosen = {k: v for k, v in asdict(settings.current()).items() if k in _PASSED_ON}
        relations = self.definition.inputs.items()
        return Job(
            definition=self.definition.text,
            part=part,
            shards=self.shards,
            feeds=feeds,
            shares=shares,
            bases={
                r: without_files(self.sources.pinned[i.table]) for r, i in relations if i.table in self.sources.pinned
            },
            state=HeldState(self.folder.root, self.folder.path, self._traces(), self._epoch, settings.current().fsync),
            leaves=left,
            folder=self._scratch,
            root=self.folder.root,
            publishing=self._publishing() if publishes else None,
            settings=chosen,
        )

    def _done(self, job: Job, what: str) -> Sequence[Report]:
        """Run a job, as far as it is not done."""
        began = time.perf_counter()
        finished: dict[int, Report] = {}
        if self.journal is not None and not job.merges:
            number = len(self.stages)
            finished = self.journal.finished(number)
            job = replace(job, journal=f"{self.journal.path}/{number:02d}-", finished=frozenset(finished))
        reports = list(finished.values())
        if len(finished) < job.shards:
            ran = self.place.reports(job, f"{self.view}: {what}")
            reports += [report for report in ran if report.shard not in finished]
        self.taken_over += len(finished)
        if sorted(r.shard for r in reports) != list(range(job.shards)):
            why = f"tasks reported {len(reports)} shards of {job.shards}"
            raise StorageError.failed(self.folder.root.url, why)
        stage = stage_of(what, job, reports, time.perf_counter() - began)
        self.works += works_of(self.made, job, stage, reports)
        for name, done in figures_of(self.made, job, reports).items():
            self.figures.setdefault(name, Figures()).add(done)
        self.stages.append(stage)
        return reports

    def _shares(self, goals: set[int]) -> list[Share]:
        cut, shares = self.made.cut, []
        sources = {v.id: name for name, v in self.made.circuit.inputs.items()}
        scanned = {v.id for goal in goals if goal in cut.scanned for v in cut.scanned[goal].leaves}
        scanned |= goals & set(sources)
        for number in sorted(scanned):
            relation = sources[number]
            one = self.definition.inputs[relation]
            base = self.sources.pinned.get(one.table)
            if base is None:
                continue
            if self.before is None:
                shares += of_files(relation, list(base.files.values()), self.place.tasks)
            else:
                shares += of_changes(relation, self.sources.files[one.table], self.place.tasks)
        for goal in sorted(goals):
            if goal not in cut.scanned and goal in self.left:
                shares += of_left(goal, self.left[goal], self.place.tasks)
        return shares

    def _traces(self) -> dict[str, TraceEntry]:
        return {} if self.before is None else together(self.before)

    def _publishing(self) -> Publishing:
        feed = bool(self.base.files) and self.base.writes_change_feed
        return Publishing(without_files(self.base), feed, self.addresses.next_file, _NUMBERS)

    # -- what was written ------------------------------------------------------------------------------------------

    def changed(self) -> Changed:
        """The actions of the commit; the addresses get the files that came."""
        found, addresses = Changed(), self.addresses
        gone: dict[int, BitMap64] = {}
        for report in self.reports:
            found.adds += [AddFile.from_json(add) for add in report.adds]
            found.cdc += report.cdc
            found.inserted += report.inserted
            found.deleted += report.deleted
            addresses.files |= {int(number): path for number, path in report.files.items()}
            for number, text in report.gone.items():
                bitmap = deletion_vectors.deserialize(base64.b64decode(text))
                gone[int(number)] = gone[int(number)] | bitmap if int(number) in gone else bitmap
        written = [*(a.path for a in found.adds), *(c["cdc"]["path"] for c in found.cdc)]
        self._check_here(self.base.storage, [partitions.decode_path(path) for path in written])
        addresses.next_file += self.shards * _NUMBERS
        edit = removal(
            self.base,
            {addresses.files[n]: deletion_vectors.positions(bitmap) for n, bitmap in gone.items()},
            folder=VECTORS,
        )
        edit.write(self.base)
        kept = {f.path for f in edit.adds}
        addresses.forget(f.path for f in edit.removes if f.path not in kept)
        found.adds = edit.adds + found.adds
        found.removes = edit.removes
        return found

    def manifest(self, at: StateAt) -> Manifest:
        """The state after it."""
        addresses = self.addresses
        circuit = built(self.definition, shards=1)
        names = fingerprints(circuit)
        had, runs = self._traces(), self._runs()
        known = {run.file for entry in had.values() for run in entry.runs}
        entries = {}
        for name, trace in durable.traces_of(circuit, addresses.traces).items():
            old = had.get(name)
            gone = self.replaced.get(name, set())
            kept = [run for run in runs.pop(name, ()) if run.file not in gone]
            if old is not None and old.bound is not None:
                entries[name] = old
            else:
                entries[name] = TraceEntry(trace.layout.fingerprint, None, (*kept, *self.merged.get(name, ())))
        assert not runs, "tasks save what the local runtime looks for"
        new = {run.file for entry in entries.values() for run in entry.runs} - known
        self._check_here(self.folder.root, [f"{self.folder.path}/runs/{file}" for file in sorted(new)])
        saved = {**addresses.to_json(), "boot": boot_id(), "at": at.to_json()}
        outputs = {output: names[v.id] for output, v in circuit.outputs.items()}
        facts = {"shards": 1, "extra": saved, "outputs": outputs, **self._figures()}
        return Manifest("", self._epoch, entries, facts)

    def _figures(self) -> dict[str, dict[str, list[Any]]]:
        """What operators did so far, as a checkpoint of this process has it (`durable`)."""
        had = {} if self.before is None else durable.figures_in(self.before)
        for name, done in self.figures.items():
            had.setdefault(name, Figures()).add(done)
        return durable.facts_of(had)

    def _check_here(self, storage: Any, paths: Sequence[str]) -> None:
        missing = [path for path in paths if not storage.exists(path)]
        if missing:
            why = (
                f"{len(missing)} of {len(paths)} files that tasks wrote are not here; "
                "executors on other machines need a storage that all share"
            )
            raise StorageError.failed(storage.url, why)


def together(manifest: Manifest) -> dict[str, TraceEntry]:
    """The traces of a manifest as those of one shard: a trace is the sum of its runs, wherever they were made."""
    found: dict[str, TraceEntry] = {}
    for name, entry in manifest.traces.items():
        owner, slash, number = name.rpartition("/")
        one = f"{owner}/0" if slash and number.isdigit() else name
        if one in found:
            found[one] = replace(found[one], runs=(*found[one].runs, *entry.runs))
        else:
            found[one] = entry
    return found


def run(
    view: str,
    definition: Definition,
    base: Snapshot,
    sources: Sources,
    place: Place,
    folder: ViewFolder,
    at: StateAt,
    *,
    before: Manifest | None,
    shards: int,
) -> Outcome:
    """Refresh a view by tasks, without a commit.

    ``before`` is the state of what is committed, or None to build it from all rows.
    """
    addresses = Addresses()
    if before is not None:
        addresses.load(before.extra["extra"])
        if set(addresses.files.values()) != set(base.files):
            raise CorruptionError.derived_state("it does not know the files that the table has", base.where)
    else:
        for path in base.files:
            addresses.number(path)
    journal = None
    if before is None:
        journal = Journal(folder, base, definition, Goal(sources.frontier, shards))
        journal.begin()
    one = _Run(
        view, definition, base, sources, place, folder, before, shards, scanning(definition.text), journal, addresses
    )
    with events.task(f"refresh {view} on Spark", unit="jobs"):
        one.run()
        one.merge()
    changed = one.changed()
    manifest = one.manifest(at)
    return Outcome(changed, manifest, one.stages, one.works, one.taken_over)
