"""How a result is written: as a table for people, or as JSON, CSV, Parquet or Arrow for programs.

All but `json` stream batch by batch, in memory that does not grow with the rows. A file appears under its name when it
is whole: it is written beside it and renamed at the end.

| format | what is written |
|---|---|
| table | columns, types and the first rows; the widths are fitted on a terminal, and nothing is cut elsewhere |
| json | one document: ``{"results": [{"statement", "columns": [{"name", "type"}], "rows": [{…}]}]}`` |
| jsonl | one object a row |
| csv | a line of names, then the rows; null is empty, an empty text is ``""``; nested values are JSON |
| parquet | one file, row groups of the size that the settings say |
| arrow | Arrow IPC: a stream on stdout, a file with ``--output`` |

In JSON and CSV decimals keep every digit (in JSON they are texts), times are ISO 8601 (an instant ends in Z), binary is
base64, and a double that is no number is ``NaN``, ``Infinity`` or ``-Infinity``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from headwater.base.errors import HeadwaterError, InputError, NotFoundError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.cli._screen import Screen
    from headwater.query.result import Result

__all__ = ["BINARY", "FORMATS", "Printer", "format_of"]

_GIVES_ROWS = ("SELECT", "EXPLAIN", "SHOW", "DESCRIBE")
_ONE_RESULT = ("csv", "parquet", "arrow")
_ENDINGS = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
FORMATS = ("table", "json", "jsonl", "csv", "parquet", "arrow")
BINARY = ("parquet", "arrow")
_CHUNK_ROWS = 8192


def format_of(path: str | None) -> str:
    """The format that a file's name asks for.

    >>> format_of("rows.parquet"), format_of("rows.txt"), format_of(None)
    ('parquet', 'table', 'table')
    """
    return _ENDINGS.get(os.path.splitext(path or "")[1].lower(), "table")


@dataclass(slots=True)
class Printer:
    """Writes results in one format, to stdout or to a file;
    `finish` writes the document of `json` and names the file.
    """

    screen: Screen
    format: str = "table"
    output: str | None = None
    max_rows: int = 100
    _documents: list[dict[str, Any]] = field(default_factory=list)
    _written: int = 0
    _part: IO[bytes] | None = None

    def check(self) -> None:
        """Refuse what cannot be written before anything is run."""
        if self.format in BINARY and self.output is None and self.screen.out.isatty():
            raise InputError.bad_argument("--format", self.format, "--output FILE or a pipe: it is not text")
        if self.output is not None and not os.path.isdir(os.path.dirname(self.output) or "."):
            raise NotFoundError.folder(os.path.dirname(self.output))

    def write(self, result: Result) -> None:
        """Write one result, or keep it for the document."""
        if self.format == "json":
            self._documents.append(_document(result))
            return
        if self.format in _ONE_RESULT:
            if not result.statement.startswith(_GIVES_ROWS):
                # What a statement did is told beside the rows, or a script could not end in a query.
                told = ", ".join(f"{k}: {v}" for row in result.to_pylist() for k, v in row.items())
                self.screen.say(f"{result.statement}  {told}")
                return
            if self._written:
                raise InputError.bad_argument("--format", self.format, "one query: such a file holds one result")
        self._written += 1
        _WRITERS[self.format](result, self)

    def finish(self, error: HeadwaterError | None = None, *, kept: Sequence[HeadwaterError] = ()) -> None:
        """End the output; where an error ended the run, a file is not left behind, and the document says so."""
        if self.format == "json":
            document: dict[str, Any] = {"results": self._documents}
            if kept:
                document["errors"] = [self.screen.worded(each).as_dict() for each in kept]
            if error is not None:
                document["error"] = self.screen.worded(error).as_dict()
            if self.output is None or error is not None:
                self.screen.document(document)
            else:
                self.stream.write((json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
            self._documents = []
        if error is not None:
            self.abandon()
        elif self.output is not None and self._part is not None:
            part, self._part = self._part, None
            part.close()
            os.replace(part.name, self.output)

    def abandon(self) -> None:
        """Leave no half of a file behind."""
        if self._part is not None:
            part, self._part = self._part, None
            part.close()
            os.remove(part.name)

    @property
    def stream(self) -> Any:
        """Where bytes go: stdout, or a file beside the one that was named."""
        if self.output is None:
            return _Stdout(self.screen.out)
        if self._part is None:
            try:
                self._part = open(f"{self.output}.{os.getpid()}.part", "wb")  # noqa: SIM115 (finish closes it)
            except OSError as error:
                raise StorageError.failed(self.output, error.strerror or str(error)) from None
        return self._part

    def arrow_stream(self) -> Any:
        """The same for Arrow's writers, which close what they are given."""
        import pyarrow as pa

        return pa.PythonFile(_Kept(self.stream), "w")


class _Kept:
    """A stream that stays open when its writer is done."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.write, self.flush = stream.write, stream.flush

    def close(self) -> None:
        self.flush()


class _Stdout:
    """The bytes under stdout, in order with the text above them."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        raw = getattr(self._out, "buffer", None)
        if raw is None:
            self._out.write(bytes(data).decode())
        else:
            self._out.flush()
            raw.write(data)
        return len(data)

    def flush(self) -> None:
        self._out.flush()


# One function a format.


def _table(result: Result, printer: Printer) -> None:
    from headwater.query.rendering.terminal import PROSE, draw, draw_lines, terminal_style

    if result.statement in PROSE:
        printer.stream.write(f"{draw_lines(result.to_arrow())}\n".encode())
        printer.stream.flush()
        return
    width: int | None = None
    colour = False
    if printer.output is None and printer.screen.out.isatty():
        width, colour = terminal_style(printer.screen.out)
    rows, total = result.head(printer.max_rows + 1)
    text = draw(rows, limit=printer.max_rows, total=total, width=width, colour=colour)
    printer.stream.write(f"{text}\n".encode())
    printer.stream.flush()


def _jsonl(result: Result, printer: Printer) -> None:
    _refuse_same_names(result, "a JSON object")
    for lines in _json_rows(result):
        printer.stream.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in lines).encode())
    printer.stream.flush()


def _csv(result: Result, printer: Printer) -> None:
    from pyarrow import csv

    from headwater.cli._csv import csv_batch, csv_schema

    schema, options = csv_schema(result.schema), csv.WriteOptions(quoting_style="needed")
    with csv.CSVWriter(printer.arrow_stream(), schema, write_options=options) as writer:
        for batch in result:
            writer.write_batch(csv_batch(batch, schema))


def _parquet(result: Result, printer: Printer) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    from headwater.base import settings

    _refuse_same_names(result, "a Parquet file")
    now = settings.current()
    try:
        with parquet.ParquetWriter(
            printer.arrow_stream(), result.schema, compression=now.parquet_compression
        ) as writer:
            for table in _gathered(result, now.row_group_rows):
                writer.write_table(table, row_group_size=now.row_group_rows)
    except pa.ArrowNotImplementedError as error:
        raise InputError.bad_argument("--format", "parquet", f"columns that Parquet can hold ({error})") from None


def _arrow(result: Result, printer: Printer) -> None:
    import pyarrow as pa

    new = pa.ipc.new_stream if printer.output is None else pa.ipc.new_file
    with new(printer.arrow_stream(), result.schema) as writer:
        for batch in result:
            writer.write_batch(batch)


_WRITERS: dict[str, Callable[[Result, Printer], None]] = {
    "table": _table,
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
}


def _document(result: Result) -> dict[str, Any]:
    from headwater.query.rendering.terminal import type_name

    _refuse_same_names(result, "a JSON object")
    return {
        "statement": result.statement,
        "columns": [{"name": f.name, "type": type_name(f.type)} for f in result.schema],
        "rows": [row for rows in _json_rows(result) for row in rows],
    }


def _json_rows(result: Result) -> Iterator[list[dict[str, Any]]]:
    from headwater.query.rendering.values import JSON, spell

    names = result.columns
    for batch in result:
        # A batch may be large, and its rows as Python objects are ten times as large.
        for start in range(0, batch.num_rows, _CHUNK_ROWS):
            columns = [spell(column, JSON) for column in batch.slice(start, _CHUNK_ROWS).columns]
            yield [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _gathered(result: Result, rows: int) -> Iterator[pa.Table]:
    """The batches put together to tables of at least ``rows``, since each becomes a row group."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in result:
        held.append(batch)
        if sum(each.num_rows for each in held) >= rows:
            yield pa.Table.from_batches(held, result.schema)
            held = []
    if held:
        yield pa.Table.from_batches(held, result.schema)


def _refuse_same_names(result: Result, what: str) -> None:
    twice = sorted({name for name in result.columns if result.columns.count(name) > 1})
    if twice:
        raise InputError.same_names(twice, what)
