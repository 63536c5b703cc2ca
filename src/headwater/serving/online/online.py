"""Online tables: the rows of a table or view by a key, ready to be looked up in microseconds.

A derived artefact like views and exports: its commits are records (`derived.recorded`), each of which names the record
files of one version with the frontier that they reflect. A refresh writes an overlay of the rows that changed, at the
price of the change; the overlays are taken in by the base in the background. Readers, in this process or in those of a
server, follow the log (`serving.store`), so what they answer is always one version, and they can say which.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from headwater.base import events, faults
from headwater.base.errors import ConflictError, InputError, NotFoundError, SchemaError
from headwater.base.frontier import Frontier
from headwater.base.kinds import words_of
from headwater.derived import upkeep
from headwater.derived.environment import Environment
from headwater.derived.plan import RefreshPlan
from headwater.derived.record import Record
from headwater.derived.recorded import Built, RecordedArtefact
from headwater.derived.reports import Refresh
from headwater.derived.sources import Input, Sources, Unavailable
from headwater.lake import snapshot
from headwater.lake.published import kind_of
from headwater.lake.select import select
from headwater.lake.snapshot import Snapshot
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, sampled
from headwater.serving.layers import Layers
from headwater.serving.merging import compacted, needs_compaction, overlaid, replace_layers
from headwater.serving.online.changes import Contradiction, TableChange, ordered_change, plain_change, went_and_came
from headwater.serving.online.definition import Definition
from headwater.serving.online.source_rows import SourceRows
from headwater.serving.projection import FetchOptions
from headwater.serving.record import LayerEntry, OnlineRecord
from headwater.serving.store import Following, OnlineStore
from headwater.serving.version import TableVersion

if TYPE_CHECKING:
    from headwater.lake.table import Table
    from headwater.serving.answer import Answer

__all__ = ["Online", "OnlinePlan"]

_FULL_SHARE = 0.3
"""A change of more rows than this share of the table is not followed: building is quicker."""
_REMOTE_SECONDS = 1.0
_NOT_LOOKED_AT: Mapping[str, Snapshot] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class OnlinePlan(RefreshPlan):
    """What a refresh of an online table would do, and which engine builds it."""

    engine: Literal["local", "spark"] = "local"

    def _details(self) -> list[str]:
        return [f"built by {self.engine} tasks"] if self.engine == "spark" else []


class Online(RecordedArtefact):
    """Rows by a key, ready to be looked up. Made by ``lake.online``."""

    kind = words_of("online")
    record_type = OnlineRecord
    remembers = True

    def __init__(self, name: str, environment: Environment) -> None:
        super().__init__(name, environment)
        self._meant = Definition.from_json(self.committed().definition)
        self.store = OnlineStore(environment.root, name)
        self._following: Following | None = None
        self._looked = 0.0

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def definition(self) -> str:
        """What it serves, of which table, by which key."""
        return str(self._meant)

    @property
    def meant(self) -> Definition:
        """The definition."""
        return self._meant

    @property
    def inputs(self) -> Sequence[Input]:
        """The key and the columns of the source."""
        return (self._meant.input,)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return self._meant.key

    @property
    def identity(self) -> tuple[str, ...]:
        """Its key."""
        return self._meant.key

    @property
    def rows(self) -> int | None:
        """How many keys have a row."""
        return int(self.record.rows)

    def create_statement(self) -> str:
        """The statement that would make such a table."""
        return self._meant.statement(self.name)

    # -- answers ---------------------------------------------------------------------------------------------------

    @property
    def current(self) -> TableVersion:
        """The newest version; an error if it was never built."""
        if self._following is None:
            self._following = self.store.follow()
        following = self._following
        if following.is_local or time.monotonic() - self._looked > _REMOTE_SECONDS or following.current is None:
            following.advance()
            self._looked = time.monotonic()
        if following.current is None:
            if following.error is not None:
                raise following.error
            raise InputError.not_built(self.name, 0, self._environment.root.url, self.kind)
        return following.current

    def fetch(
        self,
        keys: Any,
        columns: Sequence[str] | None = None,
        *,
        found: bool = True,
        status: bool = False,
        event_time: bool = False,
        missing: Literal["null", "drop"] = "null",
    ) -> Answer:
        """The values of columns for keys, in the order of the keys; nulls where a key has no row.

        Parameters
        ----------
        keys
            a list of values, or of tuples where the key has several columns; a dict of columns, Arrow, numpy or a frame
        columns
            all but the key by default
        found, status, event_time, missing
            as in `FetchOptions`

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> spend = lake.write("spend", [{"id": 1, "total": 10.5}, {"id": 2, "total": 4.0}])
        >>> features = lake.online("features", "spend", key="id", refresh=True)
        >>> answer = features.fetch([2, 7])
        >>> answer.to_pylist(), answer.found.tolist(), str(answer.frontier)
        ([{'total': 4.0}, {'total': None}], [True, False], 'spend@0')
        >>> _ = spend.update({"total": "5.0"}, where="id = 2"), features.refresh()
        >>> features.fetch([2]).to_numpy().tolist()
        [[5.0]]
        """
        from headwater.serving.answer import Answer

        version = self.current
        options = FetchOptions(found, status, event_time, missing)
        frame = version.fetch(keys, columns, options)
        return Answer(frame, frontier=version.frontier, versions={self.name: version.number})

    def as_of(
        self,
        keys: Any,
        columns: Sequence[str] | None = None,
        *,
        known_at: Any,
        found: bool = True,
        status: bool = False,
        event_time: bool = False,
        missing: Literal["null", "drop"] = "null",
    ) -> Any:
        """What `fetch` answered at a moment, byte for byte: what a model was given then is what it is trained on.

        Parameters
        ----------
        keys, columns, found, status, event_time, missing
            as for `fetch`
        known_at
            a timestamp; a frontier or the number of a version, as an answer names them; or the name of a column of
            ``keys``, a table of labels, each with a moment of its own: then the result is an Arrow table, with the
            version that answered in ``_version``

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> spend = lake.write("spend", [{"id": 1, "total": 10.5}])
        >>> features = lake.online("features", "spend", key="id", refresh=True)
        >>> served = features.fetch([1])
        >>> _ = spend.update({"total": "5.0"}), features.refresh()
        >>> features.as_of([1], known_at=served.frontier).to_pylist(), features.fetch([1]).to_pylist()
        ([{'total': 10.5}], [{'total': 5.0}])
        """
        from headwater.serving.online.past import answer_at, answers_at

        options = FetchOptions(found, status, event_time, missing)
        names = keys.keys() if isinstance(keys, dict) else getattr(keys, "column_names", getattr(keys, "columns", ()))
        if isinstance(known_at, str) and known_at in list(names):
            return answers_at(self, keys, columns, options, known_at)
        return answer_at(self, keys, columns, options, known_at)

    def source_table(self, name: str) -> Table:
        """A table of the lake."""
        return self._environment.table(name)

    def read(self) -> pa.RecordBatchReader:
        """All rows, as of `frontier`; an error if it was never built."""
        return self._read_record(self.record)

    def _read_record(self, record: OnlineRecord) -> pa.RecordBatchReader:
        if not record.layers:
            raise InputError.not_built(self.name, 0, self._environment.root.url, self.kind)
        found = self.store.newest()
        assert found is not None
        return found.read()

    def recompute(self, at: Frontier) -> pa.RecordBatchReader:
        """The rows that the source has at ``at``, of several with one key that with the largest order."""
        return self.rows_of(self._meant, self.pinned(Frontier(), at).pinned[self._meant.source])

    def rows_of(self, meant: Definition, base: Snapshot) -> pa.RecordBatchReader:
        """The rows that a definition serves of a source."""
        schema = pa.schema([f.with_nullable(True) for f in meant.stored])
        rows: Iterator[pa.RecordBatch] = iter(select(base, schema.names))
        if meant.order_by is not None:
            deciding = select(base, [*meant.key, meant.order_by])
            rows = _taken(rows, _largest(deciding))
        batches = (pa.record_batch(b.columns, schema.names).cast(schema) for b in rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def of_rows(self, rows: pa.Table) -> pa.Table | None:
        """Their keys and columns; None where of several rows with one key the last one counts."""
        if self._meant.order_by is not None:
            return None
        stored = pa.schema([f.with_nullable(True) for f in self._meant.stored])
        return rows.select(stored.names).cast(stored)

    def found(self, rows: pa.Table) -> list[dict[str, object]]:
        """What it answers now for the keys of some rows."""
        keys = rows.select(self._meant.key).group_by(list(self._meant.key)).aggregate([])
        answer = self.fetch({name: keys.column(name) for name in self._meant.key})
        listed = zip(keys.to_pylist(), answer.found.tolist(), answer.to_pylist(), strict=True)
        return [{"key": key, "found": there, "answer": row if there else None} for key, there, row in listed]

    # -- refreshing ------------------------------------------------------------------------------------------------

    def decide(self, record: OnlineRecord, sources: Sources, *, full: bool) -> OnlinePlan:
        """Whether the changes are followed."""
        if self._meant.source not in sources.pinned:
            return OnlinePlan(mode="noop", reason="no source is named")
        rows = sources.total_rows()
        sources.check_columns()
        engine = self._engine(rows)
        if not record.layers or full:
            why = "it was asked for" if record.layers else "it was never built"
            return OnlinePlan(mode="full", reason=why, rows=rows, engine=engine)
        if sources.frontier == record.frontier:
            return OnlinePlan(mode="noop", reason="nothing has changed", rows=rows)
        try:
            sources.check()
            counts = sources.changed_rows()
            sources.check_files()
        except (Unavailable, NotFoundError) as e:
            why = str(e) if isinstance(e, Unavailable) else f"its changes are gone: {e.message}"
            return OnlinePlan(mode="full", reason=why, rows=rows, engine=engine)
        changed = sum(counts.values())
        if changed > _FULL_SHARE * max(rows, record.rows) and changed > 10_000:
            reason = f"{changed:,} rows changed, of {rows:,}: building it is quicker"
            return OnlinePlan(mode="full", reason=reason, rows=rows, changes=counts, engine=engine)
        reason = f"{changed:,} row{'' if changed == 1 else 's'} changed"
        return OnlinePlan(mode="incremental", reason=reason, rows=rows, changes=counts)

    def _engine(self, rows: int) -> Literal["local", "spark"]:
        from headwater.serving.online.on_spark import is_large

        return "spark" if self._environment.session is not None and is_large(rows) else "local"

    def build(self, record: OnlineRecord, plan: OnlinePlan, sources: Sources, number: int, task: events.Task) -> Built:
        """Write the overlay of the changes, or a new base."""
        instead = None
        if plan.mode == "incremental":
            try:
                return self._follow(record, sources, number)
            except (Unavailable, Contradiction) as e:
                instead = str(e)
        task.expect(plan.rows or None)
        base = self._build_base(plan, sources, number, task)
        built = self._record(
            record, (base,), base.rows if self._meant.order_by is None else self._counted(base), sources
        )
        rows_out = record.rows + built.rows
        return Built(built, plan.rows, rows_out, instead)

    def _counted(self, base: LayerEntry) -> int:
        """The rows of a base, where several records may have one key."""
        layers = self.store.layers(OnlineRecord(layers=(base,)))
        return sum(len(located.records) for located in layers.live())

    def _build_base(self, plan: OnlinePlan, sources: Sources, number: int, task: events.Task) -> LayerEntry:
        meant, where = self._meant, sources.pinned[self._meant.source].where
        if plan.engine == "spark":
            from headwater.serving.online.on_spark import build_base

            return build_base(meant, self.store, sources.pinned[meant.source], plan.rows, number, self._environment)
        read = SourceRows()
        head, rows = sampled(_stored(read.read(sources.pinned[meant.source], meant.input), meant.stored))
        layout = layout_of(meant.stored, meant.key, head, ordered=meant.order_by is not None)
        shape = Shape(layout, new_seed(), max(1, meant.parts), meant.order_by)
        path: Callable[[int], str] = lambda part: self.store.new_file(number, part)  # noqa: E731
        # Of several rows with one key only one is served, and several parts are not written in the order of the rows.
        origins = read.origins if shape.parts == 1 and meant.order_by is None else None
        entry = LayerEntry.of(build_layer(rows, shape, path, where=where, advance=task.advance, origins=origins))
        self.store.upload(entry.files)
        return entry

    def _follow(self, record: OnlineRecord, sources: Sources, number: int) -> Built:
        """The changes as an overlay."""
        meant, base = self._meant, sources.pinned[self._meant.source]
        layers, read = self.store.layers(record), None
        if meant.order_by is None:
            read = self._went_and_came(base, sources, layers)
        changes = [] if read is not None else list(sources.net_changes(meant.input))
        rows_in = sum(batch.num_rows for batch in changes) if read is None else read.rows
        if not rows_in:
            return Built(self._record(record, record.layers, record.rows, sources), 0, 0)
        change: TableChange
        if meant.order_by is None:
            change = plain_change(changes if read is None else read, meant.stored, layers, base.where)
        else:
            change = ordered_change(
                changes, meant.stored, layers, meant.order_by, base.where, lambda: sources.rows(meant.input)
            )
        if not change.count:
            return Built(self._record(record, record.layers, record.rows, sources), rows_in, 0)
        faults.point("online.overlay.before_write", self.name)
        stack = overlaid(
            self.store, record, layers, [change.rows], change.deleted, number, order_by=meant.order_by, where=base.where
        )
        return Built(self._record(record, stack, record.rows + change.added, sources), rows_in, change.count)

    def _went_and_came(self, base: Snapshot, sources: Sources, layers: Layers) -> Any:
        try:
            names = [base.schema.field(c).name for c in self._meant.read]
            if names != list(self._meant.read):
                return None
            one_commit = sources.since.get(self._meant.source, -1) + 1 == base.version
            files = sources.files[self._meant.source]
            return went_and_came(base, files, names, self._meant.key, layers, one_commit=one_commit)
        except (NotFoundError, SchemaError) as e:
            raise Unavailable(f"the changes of `{self._meant.source}` cannot be read: {e.message}") from None

    def _record(
        self, before: OnlineRecord, layers: tuple[LayerEntry, ...], rows: int, sources: Sources
    ) -> OnlineRecord:
        made = OnlineRecord(layers=layers, rows=rows, reach=_reach(sources.pinned, self._environment))
        return replace(made, superseded=tuple(sorted(before.files - made.files)))

    def tidy(self, before: OnlineRecord | None, after: OnlineRecord) -> None:
        """Delete files that no reader can be about to open, and have the overlays taken in if they have grown."""
        if before is None:
            gone = self.store.orphans({*after.files, *after.superseded})
        else:
            gone = [name for name in before.superseded if name not in after.files]
        for name in gone:
            faults.point("online.file.before_delete", name)
        self.store.delete_files(gone)
        if needs_compaction(after):
            upkeep.later(self._upkeep_key, self._compact, what=f"compacting `{self.name}`")

    @property
    def _upkeep_key(self) -> str:
        return f"online {self._environment.root.url} {self.name}"

    def _compact(self) -> None:
        self.compact()

    def compact(self) -> bool:
        """Let the base take in the overlays; whether there was something to do. Refreshes go on meanwhile."""
        committed = self.committed()
        record = self.record_of(committed)
        if len(record.layers) < 2:
            return False
        try:
            entry = compacted(self.store, self.store.layers(record), committed.number + 1)
        except NotFoundError:  # it was refreshed so often meanwhile that its files are gone
            return False
        with self.held():
            now = self.committed()
            newest = self.record_of(now)
            layers = replace_layers(newest.layers, record.layers, entry)
            done = False
            if layers is not None and self.store.have(entry.files):  # nobody took them for what a crash left
                made = replace(newest, layers=layers)
                made = replace(made, superseded=tuple(sorted(newest.files - made.files)))
                try:
                    self.log.commit(now.number, now.definition, made.to_json())
                    done = True
                except ConflictError:  # another machine was quicker; the next refresh asks again
                    pass
            if done:
                self.store.delete_files([name for name in newest.superseded if name not in made.files])
            else:
                self.store.delete_files(entry.files)
        return done

    def refresh_alone(
        self, until: Frontier | None, *, full: bool = False, newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT
    ) -> Refresh:
        """Bring it forward, and nothing that it reads."""
        return super().refresh_alone(until, full=full, newest=newest)

    def delete_others(self, record: OnlineRecord) -> None:
        """Delete the files that a record does not name, here and in object storage."""
        self.store.delete_files([name for name in self.store.file_names() if name not in record.files])

    def remove_output(self) -> None:
        """Nothing lies outside of the table's folder."""
        upkeep.cancel(self._upkeep_key)


def _stored(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from headwater.serving.building import to_stored

    return (to_stored(batch, schema) for batch in batches)


def _reach(pinned: Mapping[str, Snapshot], environment: Environment) -> Frontier:
    """The versions of sources, and those that they reflect themselves, where they are derived."""
    found: dict[str, int] = {}
    todo = list(pinned.items())
    while todo:
        name, base = todo.pop()
        found[name] = min(base.version, found.get(name, base.version))
        if kind_of(base) is None:
            continue
        for source, version in Record.of(base).frontier.items():
            now = environment.table(source).current()
            if now is not None and kind_of(now) is not None and now.version >= version:
                todo.append((source, now if now.version == version else snapshot.at_version(now.storage, version)))
            found[source] = min(version, found.get(source, version))
    return Frontier(found)


def _largest(rows: pa.RecordBatchReader) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The positions of the rows whose last column is the largest among those that agree in all others, by DuckDB."""
    import duckdb

    *keys, order = (f"c{i}" for i in range(len(rows.schema)))
    schema = pa.schema([*(f.with_name(f"c{i}") for i, f in enumerate(rows.schema)), ("place", pa.int64())])

    def numbered() -> Iterator[pa.RecordBatch]:
        begin = 0
        for batch in rows:
            numbers = pa.array(np.arange(begin, begin + batch.num_rows))
            yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
            begin += batch.num_rows

    with duckdb.connect(":memory:") as con:
        con.register("given", pa.RecordBatchReader.from_batches(schema, numbered()))
        found = con.sql(f"SELECT max_by(place, {order}) AS place FROM given GROUP BY {', '.join(keys)} ORDER BY place")
        return np.asarray(found.to_arrow_table()["place"].to_numpy())


def _taken(rows: Iterator[pa.RecordBatch], positions: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[pa.RecordBatch]:
    """The rows at some positions of a stream."""
    begin = 0
    for batch in rows:
        first, last = np.searchsorted(positions, [begin, begin + batch.num_rows])
        if last > first:
            yield batch.take(pa.array(positions[first:last] - begin))
        begin += batch.num_rows
