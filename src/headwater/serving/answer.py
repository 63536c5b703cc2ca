"""Answers: what a fetch returns, from a server or from a table in this process.

The problem: an answer is needed as numpy, pandas, polars, Arrow or torch, and a conversion must not cost more than the
fetch. The idea: an `Answer` keeps the Arrow stream as it came and shows it in the form that is asked for; the facts
beside the rows (which frontier they reflect, of which versions they are) stay text until somebody reads them.

Invariants: rows come in the order of the keys (with ``missing="drop"``: `index` says which keys they are of). The
columns that are added to those that were asked for (``_found``, ``_status``, ``_event_time``, ``_idx``; with several
tables ``_found.spend`` and so on) are in `to_arrow` and are the attributes `found`, `status`, `event_time` and `index`;
the other conversions have the columns that were asked for. A stream that cannot be read is an error when the answer is
made, not later.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError
from headwater.base.frontier import Frontier
from headwater.base.packages import required
from headwater.serving.answer_arrays import matrix, shared_type, strided
from headwater.serving.answer_shape import (
    AnswerShape,
    KnownAnswer,
    known_answer,
    known_shape,
    remember_answer,
    shape_of,
)
from headwater.serving.flatbuffer import END
from headwater.serving.frame import Frame, FrameLayout, FrameView
from headwater.serving.frame_reading import read_batches
from headwater.serving.frame_view import Bytes, read_batch
from headwater.serving.value_status import NOT_FOUND, NULL_VALUE, PRESENT

__all__ = ["Answer"]

_SHOWN = 20
_CPU = (1, 0)
"""DLPack's kDLCPU, and the only one of them."""


class Answer:
    """Rows by key, with the frontier that they reflect.

    Parameters
    ----------
    body : bytes-like or Frame
        an Arrow IPC stream of one record batch; it is not copied
    frontier : Frontier or str
        the versions of the sources that the rows reflect
    versions : mapping of str to int, or str
        the version of each online table that was read, as ``spend@7`` in a string

    Examples
    --------
    >>> layout = FrameLayout(pa.schema([("a", pa.float32()), ("b", pa.float32()), ("_found", pa.bool_())]))
    >>> frame = layout.allocate(2)
    >>> frame.values(0)[:], frame.values(1)[:], frame.values(2)[:] = [1, 2], [3, 4], 3
    >>> answer = Answer(frame, frontier="orders@42", versions="spend@7")
    >>> answer.to_numpy().tolist(), answer.found.tolist()
    ([[1.0, 3.0], [2.0, 4.0]], [True, True])
    >>> answer
    Answer(2 rows of a, b from spend@7, orders@42)
    """

    __slots__ = ("_batch", "_body", "_frontier", "_known", "_shape", "_versions", "_view")

    def __init__(
        self, body: Bytes | Frame, *, frontier: Frontier | str = "", versions: Mapping[str, int] | str = ""
    ) -> None:
        self._frontier, self._versions = frontier, versions
        self._shape: AnswerShape
        self._view: FrameView | None
        self._body: Bytes
        self._batch: pa.RecordBatch | None = None
        self._known: KnownAnswer | None = None
        if isinstance(body, bytearray):
            known = known_answer(body)
            if known is not None:
                self._body, self._known, self._shape, self._view = body, known, known.shape, known.view(body)
                return
        if isinstance(body, Frame):
            self._shape = shape_of(body.layout)
            counts = tuple(body.null_counts.tolist())
            view = memoryview(body.buffer)
            self._view = FrameView(body.layout.columns, body.rows, view, body.places, body.lengths, counts)
            self._body = body.buffer
            return
        self._body = body
        size = int.from_bytes(body[4:8], "little")
        shape = known_shape(bytes(memoryview(body)[: 8 + size]))
        self._view = None
        if shape is not None and shape.layout.variable:
            self._batch = shape.layout.read_rows(body)
            if self._batch is not None:
                self._shape = shape
                return
        elif shape is not None:
            self._view = shape.layout.read(body)
        if shape is None or self._view is None:
            # A stream may lack its end marker; an answer that does was cut off.
            if bytes(body[-len(END) :]) != END:
                raise InputError.bad_frame("it has no end")
            self._batch = read_batches(body)
            shape = shape_of(FrameLayout(self._batch.schema))
            self._view = shape.layout.read(body)
        self._shape = shape
        if self._view is not None:
            remember_answer(shape, self._view)

    # -- what it is ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._view.rows if self._view is not None else self._rows().num_rows

    @property
    def columns(self) -> list[str]:
        """The columns that were asked for."""
        return list(self._shape.names)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of everything in the answer."""
        return self._shape.schema

    @property
    def frontier(self) -> Frontier:
        """The versions of the sources that these rows reflect."""
        if isinstance(self._frontier, str):
            self._frontier = Frontier.parse(self._frontier)
        return self._frontier

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of each online table that the rows are of."""
        if isinstance(self._versions, str):
            self._versions = dict(Frontier.parse(self._versions))
        return MappingProxyType(dict(self._versions))

    @property
    def found(self) -> npt.NDArray[np.bool_]:
        """Which keys have a row: one boolean per row; with several tables, which have one in every table."""
        tables = self._shape.tables
        if not tables:
            return self.found_in(None)
        found = self.found_in(tables[0]).copy()
        for table in tables[1:]:
            found &= self.found_in(table)
        return found

    def found_in(self, table: str | None) -> npt.NDArray[np.bool_]:
        """Which keys have a row in one of several tables."""
        flag = _added("_found", table)
        if flag in self._shape.where:
            return self._flags(self._shape.where[flag])
        if "_idx" in self._shape.where:
            return np.ones(len(self), np.bool_)
        status = _added("_status", table)
        if status in self._shape.where:
            present: npt.NDArray[np.bool_] = self._array(status).to_numpy(zero_copy_only=False) == PRESENT
            return present
        raise InputError.not_in_answer("which keys were found", "found=True")

    def status(self, column: str) -> npt.NDArray[np.uint8]:
        """What is known of each value of a column: 0 present, 1 null, 2 no row, 3 older than the ttl."""
        values = self[column]
        table = column.split(".", 1)[0] if f"_found.{column.split('.', 1)[0]}" in self._shape.where else None
        name = _added("_status", table)
        if name in self._shape.where:
            status: npt.NDArray[np.uint8] = self._array(name).to_numpy(zero_copy_only=False).astype(np.uint8)
        else:
            status = np.where(self.found_in(table), np.uint8(PRESENT), np.uint8(NOT_FOUND))
        if values.null_count:
            missing = ~values.is_valid().to_numpy(zero_copy_only=False)
            status[missing & (status == PRESENT)] = NULL_VALUE
        return status

    @property
    def event_time(self) -> pa.Array:
        """When each row was true, by the event time of its table; asked for with ``event_time=True``."""
        if "_event_time" not in self._shape.where:
            raise InputError.not_in_answer("the event times", "event_time=True")
        return self._array("_event_time")

    @property
    def index(self) -> npt.NDArray[np.int64]:
        """Of which keys the rows are, by their positions in the request: all of them,
        unless missing ones were dropped.
        """
        if "_idx" in self._shape.where:
            positions: npt.NDArray[np.int64] = self._array("_idx").to_numpy().astype(np.int64)
            return positions
        return np.arange(len(self), dtype=np.int64)

    # -- numbers ---------------------------------------------------------------------------------------------------

    def to_numpy(self, columns: Sequence[str] | None = None, *, fill: object = None) -> npt.NDArray[Any]:
        """The values as an array of rows and columns: a view without a copy where the columns have one type.

        A null is NaN in floats and NaT in times. One column of lists of one length (an embedding) gives an array of
        rows and items.

        Parameters
        ----------
        columns : sequence of str, optional
            some of the columns; all that were asked for by default
        fill : optional
            what a null becomes. Integers and booleans have no value for it, so without one their nulls are an error.
        """
        numbers = self._shape.numbers if columns is None else self._numbers(columns)
        if not numbers:
            return np.empty((len(self), 0))
        found = self._strided(numbers, whole=columns is None, fill=fill)
        if found is not None:
            return found
        batch = self._rows()
        return matrix([batch.column(n) for n in numbers], [self.schema.names[n] for n in numbers], fill)

    def _strided(self, numbers: Sequence[int], *, whole: bool, fill: object) -> npt.NDArray[Any] | None:
        """The view, if there is one and it has the right values where something is null."""
        shape, known = self._shape, self._known
        if self._view is None:
            self._view = shape.layout.read(self._body)
        view = self._view
        if view is None:
            return None
        if known is not None and known.grid is not None and whole:
            return np.ndarray(known.grid, shape.dtype, view.body, known.first, known.steps)
        specs = shape.values if whole else [view.columns[n] for n in numbers]
        dtype = shape.dtype if whole else shared_type([spec.type for spec in specs])
        if dtype is None:
            return None
        found = strided(view, shape.places if whole else [spec.buffer + 1 for spec in specs], dtype)
        if found is None or not any(view.null_counts):
            return found
        counts = view.null_counts
        nulls = [counts[spec.node] for spec in specs]
        if not any(nulls):
            return found
        if dtype.kind == "f" and fill is None:
            # Whoever made the frame put NaN where a value is null; one that did not is copied and mended.
            enough = np.count_nonzero(np.isnan(found), axis=0) >= nulls
            return found if enough.all() else None
        for number, count in zip(numbers, nulls, strict=True):
            if count and fill is None and dtype.kind in "iu":
                raise InputError.nulls_as_numbers(self.schema.names[number], str(self.schema.types[number]), count)
        return None

    def to_torch(self, columns: Sequence[str] | None = None, *, fill: object = None) -> Any:
        """The same array as a torch tensor, by DLPack: the tensor shares the memory of the answer."""
        torch = required("torch", "to_torch()")
        return torch.from_dlpack(self._exported(columns, fill))

    def __dlpack__(self, **options: Any) -> Any:
        """The array of `to_numpy`, for any library that reads DLPack: ``np.from_dlpack(answer)`` copies nothing."""
        return self._exported(None, None).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """It is memory of the CPU."""
        return _CPU

    def _exported(self, columns: Sequence[str] | None, fill: object) -> npt.NDArray[Any]:
        """An array that may be written: DLPack before its version 1 has no word for one that must not be."""
        values = self.to_numpy(columns, fill=fill)
        return values if values.flags.writeable else values.copy()

    # -- tables ----------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """Everything in the answer as an Arrow table, without a copy."""
        return pa.Table.from_batches([self._rows()])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """The values as a pandas DataFrame: one block over the bytes of the answer where the columns have one type."""
        pandas = required("pandas", "to_pandas()")
        shape = self._shape
        if shape.floats and len(set(shape.names)) == len(shape.names):
            found = self._strided(shape.numbers, whole=True, fill=None)
            if found is not None:
                if shape.index is None:
                    shape.index = pandas.Index(shape.names)
                return pandas.DataFrame(found, columns=shape.index, copy=False)
        return self._asked().to_pandas()

    def to_polars(self) -> Any:
        """The values as a polars DataFrame."""
        polars = required("polars", "to_polars()")
        return polars.from_arrow(self._asked())

    def to_pylist(self) -> list[dict[str, Any]]:
        """The values as a list of dicts."""
        rows: list[dict[str, Any]] = self._asked().to_pylist()
        return rows

    def __getitem__(self, column: str) -> pa.Array:
        """One column, with its nulls, as an Arrow array."""
        if column not in self._shape.where:
            raise NotFoundError.column(str(column), self.schema.names, where="the answer")
        return self._array(column)

    def __contains__(self, column: object) -> bool:
        return column in self._shape.where

    def _asked(self) -> pa.Table:
        return self.to_arrow().select(self._shape.numbers)

    def _rows(self) -> pa.RecordBatch:
        if self._batch is None:
            assert self._view is not None
            layout = self._shape.layout
            self._batch = read_batch(self._view.body, layout.schema, len(layout.schema_message))
        return self._batch

    def _array(self, name: str) -> pa.Array:
        return self._rows().column(self._shape.where[name])

    def _flags(self, number: int) -> npt.NDArray[np.bool_]:
        if self._view is None:
            values: npt.NDArray[np.bool_] = self._rows().column(number).to_numpy(zero_copy_only=False)
            return values
        return np.unpackbits(self._view.values(number), count=len(self), bitorder="little").view(np.bool_)

    def _numbers(self, columns: Sequence[str]) -> list[int]:
        for column in columns:
            if column not in self._shape.where:
                raise NotFoundError.column(str(column), self.schema.names, where="the answer")
        return [self._shape.where[column] for column in columns]

    # -- to look at ------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        count = len(self)
        said = [_text(self._versions), _text(self._frontier)]
        origin = ", ".join(one for one in said if one)
        names = ", ".join(self._shape.names[:6]) + (", …" if len(self._shape.names) > 6 else "")
        return f"Answer({count:,} row{'' if count == 1 else 's'} of {names}{' from ' if origin else ''}{origin})"

    def _repr_html_(self) -> str:
        shown = self.to_arrow().slice(0, _SHOWN)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown.column_names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) + "</tr>"
            for row in zip(*(column.to_pylist() for column in shown.columns), strict=True)
        )
        caption = html.escape(repr(self))
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __bytes__(self) -> bytes:
        """The Arrow IPC stream that the answer is, as it came."""
        return bytes(self._body)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (bytes(self), _text(self._frontier), _text(self._versions)))


def _rebuilt(body: bytes, frontier: str, versions: str) -> Answer:
    return Answer(body, frontier=frontier, versions=versions)


def _added(name: str, table: str | None) -> str:
    return name if table is None else f"{name}.{table}"


def _text(versions: Mapping[str, int] | str) -> str:
    return versions if isinstance(versions, str) else str(Frontier(versions))


def _cell(value: object) -> str:
    return "null" if value is None else str(value)
