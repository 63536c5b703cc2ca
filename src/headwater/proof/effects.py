"""Effects: what the changes of some rows of a table did to everything that is derived from it.

An *effect* is the part of a commit that some rows of a table are the reason for: of the table itself the changes of
the rows with a key, of an artefact what these changes made of it. It is a Z-set like the commit, and is found by the
first of these ways that serves:

- ``row by row``: the artefact is a function of each row, so the effect goes through that function (exports, online
  tables, indexes);
- ``by column``: the query passes the key through (`sql.passage`), so the rows of the publish that have it are meant;
- ``by difference``: nothing else changed between the two frontiers, so the whole publish is the effect;
- ``by recomputation``: the query is computed over sources from which the effects on them are taken back (`undone`), and
  compared with what was published. Floats may differ in their last digits, as in `verify`;
- ``by key``: of several rows with one key the last one counts: the rows with the keys of the change are compared;
- ``with others``: the publish as a whole, where the sources are too large to compute anything from, or the kind cannot.
  This is the only one that is not exact, and says so.

Effects follow one another from source to source: that on a view is what the artefacts above it start from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.change import ChangeBatch
from headwater.base.errors import HeadwaterError
from headwater.base.frontier import Frontier
from headwater.derived.comparison import compare
from headwater.derived.publishes import Publish
from headwater.lake import log
from headwater.lake.changes import FileChange, files_of, read_change, stream_changes
from headwater.lake.find import candidate_files
from headwater.lake.interval import MetadataHistory, read_commits
from headwater.lake.select import select
from headwater.lake.snapshot import Snapshot, at_version
from headwater.proof.diff import changes_of_artefact
from headwater.proof.key import Key
from headwater.proof.undone import Undone

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact

__all__ = ["Effect", "Effects", "Method", "table_effects"]

Method = Literal[
    "source", "row by row", "by column", "by difference", "by recomputation", "by key", "with others", "not known"
]


@dataclass(frozen=True, slots=True)
class Effect:
    """What some rows of a table did in one commit of a table or artefact.

    Parameters
    ----------
    version : int
        of the table, or the number of the commit of an artefact without one
    before, after : Frontier
        what an artefact reflected before and after it; without entries for a plain table
    change : ChangeBatch
        the rows that went and came
    method : str
        how it was found
    operation, at_ms
        what the commit was, and when
    note : str
        what a reader has to know
    """

    version: int
    before: Frontier
    after: Frontier
    change: ChangeBatch
    method: Method
    operation: str = ""
    at_ms: int | None = None
    note: str = ""

    @property
    def exact(self) -> bool:
        """Whether all of it is the effect of the rows, and nothing else."""
        return self.method not in ("with others", "not known")


def table_effects(base: Snapshot, after: int, key: Key) -> list[Effect]:
    """What happened to the rows with a key in each version after ``after``, oldest first.

    Where the log begins later, or ``after`` is -1 and does not, the rows that were there then count as having come.
    """
    kept = sorted(log.list_segment(base.storage).commits)
    first = min(kept, default=base.version)
    found = []
    if after < 0 and first > 0:
        after = first
        rows = select(at_version(base.storage, first), base.schema.names, key.condition).read_all()
        if rows.num_rows:
            found.append(_of_table(first, ChangeBatch.from_rows(rows), "was there when the log begins", None))
    commits = read_commits(base.storage, after, base.version)
    history = MetadataHistory.until(base, after, commits)
    for commit in commits:
        change = _of_commit(base, files_of(base, [commit], history), key)
        if not change.is_empty:
            operation, at_ms = str(commit.info.get("operation", "")), commit.info.get("timestamp")
            found.append(_of_table(commit.version, change, operation, at_ms if isinstance(at_ms, int) else None))
    return found


def _of_table(version: int, change: ChangeBatch, operation: str, at_ms: int | None) -> Effect:
    return Effect(version, Frontier(), Frontier(), change.consolidate(), "source", operation, at_ms)


def _of_commit(base: Snapshot, files: Sequence[FileChange], key: Key) -> ChangeBatch:
    names = base.schema.names
    found = ChangeBatch.empty(pa.schema([f.with_nullable(True) for f in base.arrow_schema]))
    parts = [found.table]
    for change in _candidates(base, files, key):
        for batch in read_change(base, change, names):
            mask = key.mask(batch)
            if mask.any():
                parts.append(pa.Table.from_batches([batch.filter(pa.array(mask))], found.table.schema))
    return ChangeBatch.from_table(pa.concat_tables(parts)).consolidate()


def _candidates(base: Snapshot, files: Sequence[FileChange], key: Key) -> Iterator[FileChange]:
    """The files that may hold rows with the key, by the statistics of those that are laid out as now."""
    for change in files:
        side = change.after or change.before
        if (
            change.feed
            or change.metadata is not None
            or side is None
            or side.stats is None
            or candidate_files(base, key.conjuncts, [side])
        ):
            yield change


@dataclass
class Effects:
    """The effects of a key's rows, found artefact by artefact in the order of their dependencies.

    Parameters
    ----------
    recompute_rows : int
        how many rows the sources of a view may have for it to be recomputed
    """

    recompute_rows: int
    found: dict[str, list[Effect]] = field(default_factory=dict)
    bases: dict[str, Snapshot] = field(default_factory=dict)
    keys: dict[str, Key | None] = field(default_factory=dict)

    def begin(self, name: str, base: Snapshot, key: Key, effects: list[Effect]) -> None:
        """Start from a table."""
        self.found[name], self.bases[name], self.keys[name] = effects, base, key

    def follow(self, artefact: Artefact, base: Snapshot | None) -> list[Effect]:
        """Find what the effects on the sources of an artefact did to it; ``base`` is its table, if it has one."""
        publishes = artefact.publishes()
        key = self._carried(artefact)
        self.keys[artefact.name] = key
        if base is not None:
            self.bases[artefact.name] = base
        found, before = [], Frontier()
        for publish in publishes:
            came = self._came(artefact, before, publish.frontier)
            if came:
                effect = self._effect(artefact, base, before, publish, came, key)
                if effect is not None:
                    found.append(effect)
            before = publish.frontier
        self.found[artefact.name] = found
        return found

    def unseen(self, artefact: Artefact) -> dict[str, list[int]]:
        """The versions of its sources with effects that an artefact does not reflect yet."""
        frontier = artefact.frontier
        late = {
            name: [e.version for e in self.found.get(name, ()) if e.version > frontier.get(name, -1)]
            for name in artefact.reads
        }
        return {name: versions for name, versions in late.items() if versions}

    # -- one artefact --------------------------------------------------------------------------------------------------

    def _carried(self, artefact: Artefact) -> Key | None:
        """The key under the names that the artefact's own rows have for its columns."""
        touched = [name for name in artefact.reads if self.found.get(name)]
        if len(touched) != 1:
            return None
        key = self.keys.get(touched[0])
        names = None if key is None else artefact.carried(touched[0], key.columns)
        return None if key is None or names is None else key.renamed(names)

    def _came(self, artefact: Artefact, before: Frontier, after: Frontier) -> dict[str, ChangeBatch]:
        """The effects on each source between two frontiers, added up."""
        found = {}
        for name in artefact.reads:
            low, high = before.get(name, -1), after.get(name, -1)
            parts = [e.change for e in self.found.get(name, ()) if low < e.version <= high]
            if parts:
                total = parts[0]
                for part in parts[1:]:
                    total = total + part
                total = total.consolidate()
                if not total.is_empty:
                    found[name] = total
        return found

    def _effect(
        self,
        artefact: Artefact,
        base: Snapshot | None,
        before: Frontier,
        publish: Publish,
        came: Mapping[str, ChangeBatch],
        key: Key | None,
    ) -> Effect | None:
        def made(change: ChangeBatch | None, method: Method, note: str = "") -> Effect | None:
            change = None if change is None else change.consolidate()
            if change is None or (change.is_empty and not note):
                return None
            return Effect(publish.version, before, publish.frontier, change, method, "refresh", publish.at_ms, note)

        mapped = self._row_by_row(artefact, came)
        if mapped is not None:
            return made(mapped, "row by row")
        if base is None:
            return made(*self._of_recorded(artefact, before, publish, came))
        try:
            until = at_version(base.storage, publish.version)
            published = stream_changes(until, publish.version - 1)
            if key is not None:
                return made(_with_key(published, key), "by column")
            if self._alone(artefact, before, publish.frontier, came):
                return made(ChangeBatch.from_table(published.read_all()), "by difference")
            redone = self._recomputed(artefact, until, publish, came)
            if redone is not None:
                return made(redone, "by recomputation")
            note = "the publish as a whole: other rows changed it as well"
            return made(ChangeBatch.from_table(published.read_all()), "with others", note)
        except HeadwaterError as error:
            empty = ChangeBatch.empty(base.arrow_schema)
            return made(empty, "not known", error.message)

    def _row_by_row(self, artefact: Artefact, came: Mapping[str, ChangeBatch]) -> ChangeBatch | None:
        if len(came) != 1:
            return None
        (change,) = came.values()
        new = artefact.of_rows(change.inserted())
        old = artefact.of_rows(change.deleted())
        return None if new is None or old is None else ChangeBatch.diff(old, new)

    def _alone(self, artefact: Artefact, before: Frontier, after: Frontier, came: Mapping[str, ChangeBatch]) -> bool:
        """Whether nothing else changed in any source between two frontiers."""
        for name in artefact.reads:
            low, high = before.get(name, -1), after.get(name, -1)
            if low == high:
                continue
            table = artefact.environment.table(name)
            until = self.bases.get(name) or table.snapshot
            if until.version != high:
                until = at_version(table.storage, high)
            own = int(np.abs(came[name].weights).sum()) if name in came else 0
            for batch in stream_changes(until, low):
                own -= int(np.abs(batch.column(batch.num_columns - 1).to_numpy()).sum())
                if own < 0:
                    return False
        return True

    def _recomputed(
        self, artefact: Artefact, until: Snapshot, publish: Publish, came: Mapping[str, ChangeBatch]
    ) -> ChangeBatch | None:
        """What the artefact has now against what it would have without the effects on its sources."""
        instead, rows = {}, 0
        for name in artefact.reads:
            table = artefact.environment.table(name)
            there = at_version(table.storage, publish.frontier[name])
            rows += there.num_rows or 0
            if name in came:
                if not set(there.schema.names) <= set(came[name].schema.names):
                    return None
                instead[name] = Undone(there, came[name])
        if rows > self.recompute_rows:
            return None
        if artefact.recompute_over(publish.frontier, instead) is None:
            return None

        def without() -> pa.RecordBatchReader:
            reader = artefact.recompute_over(publish.frontier, instead)
            assert reader is not None, "it could be recomputed before"
            return reader

        found = compare(
            publish.frontier, expected=without, actual=lambda: select(until), rows=until.num_rows, name=artefact.name
        )
        return found.missing.negate() + found.extra

    def _of_recorded(
        self, artefact: Artefact, before: Frontier, publish: Publish, came: Mapping[str, ChangeBatch]
    ) -> tuple[ChangeBatch, Method]:
        """The same for an artefact without a table: what changed among the rows with the keys of the change."""
        change = ChangeBatch.from_table(changes_of_artefact(artefact, before, publish.frontier).read_all())
        key = artefact.identity
        touched = [one.rows.select(list(key)) for one in came.values() if key and set(key) <= set(one.schema.names)]
        if not touched:
            return change, "with others"
        keys = change.rows.select(list(key))
        wanted = pa.concat_tables([one.cast(keys.schema) for one in touched])
        codes = rowkey.row_codes(pa.concat_tables([wanted, keys])).ids
        same = np.isin(codes[wanted.num_rows :], codes[: wanted.num_rows])
        return ChangeBatch.from_table(rowkey.take_rows(change.table, np.flatnonzero(same))), "by key"


def _with_key(changes: pa.RecordBatchReader, key: Key) -> ChangeBatch:
    parts = [pa.Table.from_batches([], changes.schema)]
    for batch in changes:
        mask = key.mask(batch)
        if mask.any():
            parts.append(pa.Table.from_batches([batch.filter(pa.array(mask))]))
    return ChangeBatch.from_table(pa.concat_tables(parts))
