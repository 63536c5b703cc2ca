"""Residue: is anything left below a folder of what was erased?

Every object is read from its first byte to its last. Raw bytes are compared with everything that a value may be stored
as; where compression or coding hides bytes, the contents are decoded and compared as well: Parquet files column by
column (data, feeds and checkpoints), runs of a view's state with their rows and heaps, splits of an index with their
terms and hot columns, Arrow files. What cannot be decoded is a hit: nothing is called clean that was not read.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base import events
from headwater.base.storage import Entry, Storage
from headwater.incremental.run_file import RunFile
from headwater.incremental.run_narrow import decompressed, widened
from headwater.lake.erasure import Suspicion
from headwater.proof.suspicion import Wanted

__all__ = ["Residue", "search"]

_CHUNK = 8 << 20
_MOST_HITS = 100


@dataclass
class Residue:
    """What a search has read, and where it found something.

    Parameters
    ----------
    files, bytes : int
        how much was read
    decoded : dict of str to int
        how many files of each kind were decoded as well
    hits : list of tuple of str
        the path of each file that holds something, and how it does
    """

    files: int = 0
    bytes: int = 0
    decoded: dict[str, int] = field(default_factory=dict)
    hits: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Residue) -> None:
        """Take in what another search found."""
        self.files += other.files
        self.bytes += other.bytes
        for kind, count in other.decoded.items():
            self.decoded[kind] = self.decoded.get(kind, 0) + count
        self.hits += other.hits


def search(root: Storage, wanted: Wanted, tables: Mapping[str, Suspicion]) -> Residue:
    """Read everything below a folder; ``tables`` are what is looked for in folders below it, by their paths."""
    found = Residue()
    with events.task(f"search {root.url}", total=None, unit="bytes") as task:
        for entry in root.list(""):
            how = _searched(root, entry, wanted, _of_folder(entry.path, tables), found)
            task.advance(entry.size)
            if how is not None and len(found.hits) < _MOST_HITS:
                found.hits.append((entry.path, how))
    return found


def _of_folder(path: str, tables: Mapping[str, Suspicion]) -> Suspicion | None:
    fitting = [folder for folder in tables if path.startswith(f"{folder}/") or not folder]
    return tables[max(fitting, key=len)] if fitting else None


def _searched(root: Storage, entry: Entry, wanted: Wanted, table: Suspicion | None, found: Residue) -> str | None:
    """How an object holds something; None where it does not."""
    found.files += 1
    if wanted.in_text(entry.path) or (table is not None and table.of_text(entry.path)):
        return "its name"
    for piece in _pieces(root, entry):
        found.bytes += min(len(piece), _CHUNK)
        if any(pattern in piece for pattern in wanted.patterns):
            return "its bytes"
    ending = entry.path.rpartition(".")[2]
    decode = _DECODERS.get(ending)
    if decode is None:
        return None
    found.decoded[ending] = found.decoded.get(ending, 0) + 1
    try:
        return "its contents" if decode(root.get(entry.path), wanted, table) else None
    except Exception as error:  # noqa: BLE001  whatever is wrong with it, it is not known to be clean
        return f"it cannot be decoded: {type(error).__name__}"


def _pieces(root: Storage, entry: Entry) -> Iterator[bytes]:
    """The bytes of an object, in pieces that overlap by more than any pattern is long."""
    overlap, kept = 4096, b""
    with root.open_input(entry.path, size=entry.size) as source:
        while piece := source.read(_CHUNK):
            yield kept + piece
            kept = piece[-overlap:]


def _parquet(data: bytes, wanted: Wanted, table: Suspicion | None) -> bool:
    file = pq.ParquetFile(pa.BufferReader(data))
    if wanted.in_text(str(file.schema_arrow.metadata or "")):
        return True
    for batch in file.iter_batches():
        if wanted.in_rows(batch) or (table is not None and table.of_rows(batch, {})):
            return True
        is_checkpoint = table is not None and "metaData" in batch.schema.names
        if table is not None and is_checkpoint and any(table.of_text(str(row)) for row in batch.to_pylist()):
            return True
    return False


def _json(data: bytes, wanted: Wanted, table: Suspicion | None) -> bool:
    text = data.decode("utf-8", errors="replace")
    return wanted.in_text(text) or (table is not None and table.of_text(text))


def _run(data: bytes, wanted: Wanted, table: Suspicion | None) -> bool:
    del table
    with tempfile.TemporaryDirectory(prefix="headwater-search-") as folder:
        path = os.path.join(folder, "run")
        with open(path, "wb") as f:
            f.write(data)
        header = RunFile.read(path).header
    stored, heap = (data[s.offset : s.offset + s.length] for s in (header.sections[0], header.sections[2]))
    if header.version != 1:
        rows = widened(stored, header.rows, header.width)
        if rows is None:
            raise ValueError("its rows do not fit")
        stored = rows.tobytes()
        if heap:
            unpacked = decompressed(heap)
            if unpacked is None:
                raise ValueError("its heap does not fit")
            heap = unpacked.tobytes()
    return any(pattern in stored or pattern in heap for pattern in wanted.patterns)


def _split(data: bytes, wanted: Wanted, table: Suspicion | None) -> bool:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            inner = archive.read(name)
            if any(pattern in inner for pattern in wanted.patterns):
                return True
            if name == "hot.arrow" and _arrow(inner, wanted, table):
                return True
            if name == "terms.arrow" and _terms(inner, wanted):
                return True
    return False


def _terms(data: bytes, wanted: Wanted) -> bool:
    """Whether a word of an index is one of the strings, as words are kept: in lower case."""
    lower = {text.lower() for text in wanted.texts}
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        return any(lower & set(batch.column("term").to_pylist()) for batch in reader)


def _arrow(data: bytes, wanted: Wanted, table: Suspicion | None) -> bool:
    with pa.ipc.open_file(pa.BufferReader(data)) as file:
        rows = file.read_all()
    return wanted.in_rows(rows) or any(table is not None and table.of_rows(b, {}) for b in rows.to_batches())


_DECODERS: Mapping[str, Callable[[bytes, Wanted, Suspicion | None], bool]] = {
    "parquet": _parquet,
    "json": _json,
    "run": _run,
    "split": _split,
    "arrow": _arrow,
}
