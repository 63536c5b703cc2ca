"""Reading the rows of a source for a base, and noting from where each of them comes (`headwater.serving.origins`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.derived.sources import Input, renamed
from headwater.lake.scan import scan_files
from headwater.lake.snapshot import Snapshot
from headwater.serving.origins import Origins

__all__ = ["SourceRows"]

Numbers = np.ndarray[Any, np.dtype[np.int64]]
_NONE = np.zeros(0, np.int64)


class SourceRows:
    """All rows of a source, with the files and positions that they were read from."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._runs: list[tuple[int, Numbers, Numbers]] = []

    def read(self, base: Snapshot, one: Input) -> Iterator[pa.RecordBatch]:
        """The rows, as `headwater.derived.sources.Sources.rows` gives them."""
        names = [base.schema.field(c).name for c in one.columns]
        for file, batch in scan_files(base, names, positions=True):
            if not self._paths or self._paths[-1] != file.path:
                self._paths.append(file.path)
            self._note(batch.column(len(names)).to_numpy())
            yield renamed(batch.select(range(len(names))), one.columns)

    def _note(self, rows: Numbers) -> None:
        if not len(rows):
            return
        begins = np.zeros(1, np.int64)
        if rows[-1] - rows[0] != len(rows) - 1:  # some in between are not there
            begins = np.concatenate([begins, np.flatnonzero(np.diff(rows) != 1) + 1])
        self._runs.append((len(self._paths) - 1, rows[begins], np.diff(begins, append=len(rows))))

    def origins(self) -> Origins:
        """The origins of records that are these rows in this order; after all of them were read."""
        file = np.concatenate([_NONE, *(np.full(len(start), number) for number, start, _ in self._runs)])
        start = np.concatenate([_NONE, *(start for _, start, _ in self._runs)])
        length = np.concatenate([_NONE, *(length for _, _, length in self._runs)])
        return Origins.of_runs(tuple(self._paths), file, start, length, np.cumsum(length) - length)
