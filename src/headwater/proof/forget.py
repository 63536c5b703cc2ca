"""Forget: erase the rows with a key, wherever they or what was made of them lie, and certify it.

A deleted row is still in old files, feeds, statistics, states, splits and record files. Forgetting goes through all of
it in an order in which every step can be done again: whatever a process leaves that ends in between, a second run with
the same key finds and finishes, and one that has nothing left to do only searches.

1. The tables: the rows are deleted by writing files without them, live files that hold them under deletion vectors are
   written anew, and a version is committed that tells nothing (`lake.erasure`).
2. Everything downstream, each after what it reads: brought forward by the deletion, then written anew
   (`Artefact.purge`), with its table treated like those of 1. Where a query passes the key through, its rows are told
   by it; where it does not, everything that only older versions of its table have is deleted.
3. The past of all these tables, what is derived first and the sources last: as long as a source still has an old file,
   a second run can learn from it what else to look for.
4. A search of every byte that is left below the lake's folder, and below the folders of exports that lie elsewhere
   (`residue`); and the certificate.

What is looked for is the key, and the strings of its rows that no other row of the table has.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base import events, faults
from headwater.base.errors import HeadwaterError, InputError, UnsupportedError
from headwater.base.storage import Storage, is_elsewhere
from headwater.derived import kinds
from headwater.export import Export
from headwater.lake import erasure
from headwater.lake.scan import scan
from headwater.lake.select import select
from headwater.lake.snapshot import Snapshot
from headwater.proof.certificate import Certificate, ErasedTable, PurgedArtefact, hash_of_key
from headwater.proof.key import Key, KeyText
from headwater.proof.nodes import Lineage, Node, node
from headwater.proof.residue import Residue, search
from headwater.proof.suspicion import KeySuspicion, Wanted

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.port import DerivingLake

__all__ = ["ForgetPlan", "forget", "plan_forget"]

FORGOTTEN = "_headwater/forgotten"
"""Where certificates lie."""
_LEAST_CHARACTERS = 6
_MOST_TEXTS = 1_000


@dataclass(frozen=True, kw_only=True)
class ForgetPlan:
    """What `forget` would do.

    Parameters
    ----------
    table, key
    rows : mapping of str to int
        live rows with the key, of each table
    files : mapping of str to int
        data files that hold such rows, live or not, of each table
    versions : mapping of str to int
        the newest version of each table: time travel to it, and to those before it, will be lost
    artefacts : mapping of str to tuple of str
        what is derived from them, each with the columns by which its rows are told; none: its whole past goes
    refused : tuple of str
        why it cannot be done
    left_out : tuple of str
        what would not be touched
    """

    table: str
    key: Key
    rows: Mapping[str, int]
    files: Mapping[str, int]
    versions: Mapping[str, int]
    artefacts: Mapping[str, tuple[str, ...]]
    refused: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"forget {self.table} {self.key}"]
        for name, rows in self.rows.items():
            lines.append(f"  {name}: {rows:,} live rows; {self.files[name]:,} files hold such rows")
            if self.files[name] or rows:
                lines.append(f"    versions 0 to {self.versions[name]} will not be readable any more")
        for name, columns in self.artefacts.items():
            told = f"rows told by {', '.join(columns)}" if columns else "all older versions of it go"
            lines.append(f"  {name}: refreshed and written anew; {told}")
        lines += [f"  not touched: {one}" for one in self.left_out]
        lines += [f"  refused: {one}" for one in self.refused]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return {
            "table": self.table,
            "key": self.key.as_dict(),
            "rows": dict(self.rows),
            "files": dict(self.files),
            "versions": dict(self.versions),
            "artefacts": {name: list(columns) for name, columns in self.artefacts.items()},
            "refused": list(self.refused),
            "left_out": list(self.left_out),
        }


@dataclass
class _Work:
    """What is known of one erasure."""

    lake: DerivingLake
    roots: dict[str, Key]
    artefacts: list[str]
    refused: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    wanted: Wanted = field(default_factory=lambda: Wanted((), ()))
    keys: dict[str, Key | None] = field(default_factory=dict)
    erased: dict[str, ErasedTable] = field(default_factory=dict)
    purged: list[PurgedArtefact] = field(default_factory=list)
    suspicions: dict[str, KeySuspicion] = field(default_factory=dict)

    def one(self, name: str) -> Node:
        return node(self.lake, name)

    def suspicion(self, base: Snapshot, name: str) -> KeySuspicion:
        """What is looked for in the files of a table."""
        key = self.keys.get(name)
        found = KeySuspicion.of(base, key, self.wanted, whole_past=key is None)
        self.suspicions[name.replace(".", "/")] = found
        return found


def plan_forget(
    lake: DerivingLake,
    table: str,
    key: KeyText,
    *,
    also: Mapping[str, KeyText] | None = None,
    allow_outside: bool = False,
) -> ForgetPlan:
    """What `forget` would do; nothing is changed."""
    work = _work(lake, table, key, also or {}, allow_outside=allow_outside)
    rows, files, versions = {}, {}, {}
    for name, one in work.roots.items():
        base = work.one(name).base
        rows[name] = sum(batch.num_rows for batch in select(base, list(one.columns), one.condition))
        files[name] = len(erasure.suspicious_files(base, work.suspicion(base, name)))
        versions[name] = base.version
    told = {name: (found.columns if (found := work.keys.get(name)) is not None else ()) for name in work.artefacts}
    first = next(iter(work.roots))
    return ForgetPlan(
        table=first, key=work.roots[first], rows=rows, files=files, versions=versions, artefacts=told,
        refused=tuple(work.refused), left_out=tuple(work.left_out),
    )  # fmt: skip


def forget(
    lake: DerivingLake,
    table: str,
    key: KeyText,
    *,
    also: Mapping[str, KeyText] | None = None,
    allow_outside: bool = False,
) -> Certificate:
    """Erase the rows with a key from a table and from everything derived, with their past, and certify it.

    Parameters
    ----------
    key
        which rows: ``"customer_id=1234"``, or ``{"customer_id": 1234}``
    also
        further tables that have rows about the same, each with the key there
    allow_outside
        go on where something lies elsewhere and cannot be erased; the certificate names it

    Running it again does what is left to do, and searches again.

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> _ = lake.write("people", [{"id": 1, "mail": "ada@example.org"}, {"id": 2, "mail": "bob@example.org"}])
    >>> _ = lake.view("mails", "SELECT mail FROM people", refresh=True)
    >>> found = lake.forget("people", "id=1")
    >>> found.complete, found.roots[0].rows, lake.view("mails").to_pylist()
    (True, 1, [{'mail': 'bob@example.org'}])
    """
    work = _work(lake, table, key, also or {}, allow_outside=allow_outside)
    first = next(iter(work.roots))
    if work.refused:
        raise UnsupportedError.erasure(first, work.refused)
    _finish(lake)
    work.wanted = _wanted(work)
    tables = [name for name in work.artefacts if work.one(name).table is not None]
    steps = len(work.artefacts) + len(tables) + len(work.roots)
    with events.task(f"forget in {first}", total=steps, unit="steps") as task:
        rows = {name: _cleared(work, name, delete=one) for name, one in work.roots.items()}
        for name in work.artefacts:
            _purge(work, name)
            task.advance(1)
        for name in [*reversed(tables), *work.roots]:
            _truncate(work, name, rows.get(name, 0))
            task.advance(1)
    _finish(lake)
    found, places = _residue(work)
    return _certified(work, first, found, places, tables)


# -- what it is about ------------------------------------------------------------------------------------------------


def _work(lake: DerivingLake, table: str, key: KeyText, also: Mapping[str, KeyText], *, allow_outside: bool) -> _Work:
    roots: dict[str, Key] = {}
    refused: list[str] = []
    left_out: list[str] = []
    for name, text in {table: key, **also}.items():
        one = node(lake, name)
        if one.artefact is not None:
            raise InputError.is_derived(one.name, one.artefact.kind, "forget()")
        roots[one.name] = Key.of(text, one.base)
        found = _outside(lake, one)
        (left_out if allow_outside else refused).extend(found)
        if one.base.is_on("delta.appendOnly"):
            refused.append(f"`{one.name}` only takes rows (delta.appendOnly)")
        one.base.check_writable()
    lineage = Lineage(lake)
    below = {name for root in roots for name in lineage.downstream(root)}
    work = _Work(lake, roots, lineage.ordered(sorted(below)), refused, left_out)
    work.keys.update(roots)
    for name in work.artefacts:
        artefact = node(lake, name, lineage.lookup).artefact
        assert artefact is not None, "what is downstream is derived"
        try:
            work.keys[name] = _carried(artefact, work)
            if artefact.built:
                artefact.plan()
        except HeadwaterError as error:
            refused.append(f"`{name}` cannot be refreshed: {error.message}")
    return work


def _outside(lake: DerivingLake, one: Node) -> list[str]:
    """What of a table lies where it is not the lake's to erase."""
    if not lake.environment().owns(one.name, one.base.storage):
        return [f"`{one.name}` is attached, and lies at {one.base.storage.url}"]
    far = [path for path in one.base.files if is_elsewhere(path)]
    return (
        [f"{len(far):,} files of `{one.name}` lie outside of its folder, as those of a shallow clone do"] if far else []
    )


def _carried(artefact: Artefact, work: _Work) -> Key | None:
    """The key under the names of an artefact's own columns; None where its rows cannot be told by it."""
    touched = [name for name in artefact.reads if name in work.keys]
    if len(touched) != 1 or (key := work.keys[touched[0]]) is None:
        return None
    names = artefact.carried(touched[0], key.columns)
    return None if names is None else key.renamed(names)


def _wanted(work: _Work) -> Wanted:
    """The keys, and the strings that only their rows have, in whatever file of the tables rows of them still are."""
    total = Wanted((), ())
    for name, key in work.roots.items():
        base = work.one(name).base
        texts = _texts_of(_rows_left(base, key))
        for batch in scan(base, base.schema.names):
            if not texts:
                break
            others = batch.filter(pc.invert(pa.array(key.mask(batch))))
            texts -= _texts_of([others], among=texts)
        total |= Wanted.of(key, sorted(texts)[:_MOST_TEXTS])
    return total


def _rows_left(base: Snapshot, key: Key) -> Iterable[pa.RecordBatch]:
    """The rows with a key in every data file below a table's folder, live or not."""
    import pyarrow.parquet as pq

    plain = KeySuspicion.of(base, key, Wanted((), ()))
    own = {name for f in base.schema.fields for name in (f.name, f.physical_name)}  # a feed has columns of its own
    for entry in erasure.suspicious_files(base, plain).values():
        with base.storage.open_input(entry.path, size=entry.size) as source:
            for batch in pq.ParquetFile(source).iter_batches():
                mine = batch.select([name for name in batch.schema.names if name in own])
                yield mine.filter(plain.mask(batch, _values_in(entry.path)))


def _values_in(path: str) -> Mapping[str, str | None]:
    """The partition values of a file, as far as its path says them."""
    found = {}
    for part in path.split("/")[:-1]:
        name, equal, value = part.partition("=")
        if equal:
            found[name] = value
    return found


def _texts_of(batches: Iterable[pa.RecordBatch], among: set[str] | None = None) -> set[str]:
    """The strings of some rows that are long enough to be evidence."""
    found: set[str] = set()
    for batch in batches:
        for column in batch.columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                values = column if among is None else column.filter(pc.is_in(column, pa.array(sorted(among))))
                found |= {v for v in pc.unique(values).to_pylist() if v is not None and len(v) >= _LEAST_CHARACTERS}
    return found


# -- doing it --------------------------------------------------------------------------------------------------------


def _finish(lake: DerivingLake) -> None:
    """Wait until nothing is done in the background for what is derived."""
    for one in kinds.loaded():
        one.finish(lake.environment())


def _cleared(work: _Work, name: str, *, delete: Key | None = None) -> int:
    """Commit what leaves no row in live files, and a version that tells nothing of it; gives how many rows went."""
    faults.point("forget.clear", name)
    base, rows = work.one(name).base, 0
    before = base.version
    if delete is not None and not _far(base):
        rows = int(erasure.delete_rows(base, delete.condition).metrics.get("numDeletedRows", 0))
        base = work.one(name).base
    suspicious = erasure.suspicious_files(base, work.suspicion(base, name))
    erasure.rewrite(base, suspicious)
    base = work.one(name).base
    if base.version != before or suspicious:
        erasure.mark(base)
    return rows


def _far(base: Snapshot) -> bool:
    return any(is_elsewhere(path) for path in base.files)


def _purge(work: _Work, name: str) -> None:
    """Bring something derived forward, and write it anew."""
    faults.point("forget.purge", name)
    one, environment = work.one(name), work.lake.environment()
    kind = kinds.kind(one.kind)
    artefact = kind.open(name, environment)  # that of the node is for looking only
    if not artefact.built:
        return
    before = artefact.frontier
    artefact.refresh_alone(None)
    artefact.purge()
    if one.table is not None:
        _cleared(work, name)
    after = kind.open(name, environment)
    key = work.keys.get(name)
    work.purged.append(
        PurgedArtefact(
            name=name, kind=one.kind, before=dict(before), after=dict(after.frontier),
            told_by=() if key is None else key.columns,
        )
    )  # fmt: skip


def _truncate(work: _Work, name: str, rows: int) -> None:
    """Delete the past of a table that has what was erased."""
    faults.point("forget.truncate", name)
    base = work.one(name).base
    suspicion = work.suspicion(base, name)
    done = erasure.truncate(base, suspicion, erasure.suspicious_files(base, suspicion))
    work.erased[name] = ErasedTable(
        name=name, rows=rows, version=base.version, lost=done.lost, entries=done.entries, files=done.files,
        bytes=done.bytes,
    )  # fmt: skip


def _residue(work: _Work) -> tuple[Residue, list[str]]:
    """Search everything that is left."""
    root = work.lake.environment().root
    found, places = search(root, work.wanted, work.suspicions), [root.url]
    for storage, of in _elsewhere(work, root):
        found.add(search(storage, work.wanted, {"": work.suspicions[of]} if of in work.suspicions else {}))
        places.append(storage.url)
    return found, places


def _elsewhere(work: _Work, root: Storage) -> Iterable[tuple[Storage, str]]:
    """The folders outside of the lake that something downstream has written."""
    for name in work.artefacts:
        artefact = work.one(name).artefact
        if isinstance(artefact, Export) and not artefact.storage.url.startswith(root.url):
            yield artefact.storage, name


def _certified(work: _Work, table: str, found: Residue, places: Sequence[str], tables: Sequence[str]) -> Certificate:
    salt = os.urandom(16).hex()
    key = work.roots[table]
    made = Certificate(
        id=uuid.uuid4().hex,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        table=table,
        columns=key.columns,
        salt=salt,
        hash=hash_of_key(key, salt),
        roots=tuple(work.erased[name] for name in work.roots),
        tables=tuple(work.erased[name] for name in tables),
        artefacts=tuple(work.purged),
        files=found.files,
        bytes=found.bytes,
        decoded=found.decoded,
        places=tuple(places),
        hits=tuple(found.hits),
        left_out=tuple(work.left_out),
    )
    if made.complete:
        root, stem = work.lake.environment().root, f"{FORGOTTEN}/{made.at.replace(':', '')}-{made.id}"
        faults.point("forget.certificate", made.id)
        root.put(f"{stem}.txt", f"{made}\n".encode())
        root.put(f"{stem}.json", json.dumps(made.as_dict(), indent=2, ensure_ascii=False).encode())
    return made
