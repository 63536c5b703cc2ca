"""What a step gives: the change of each output, as Arrow when it is asked for.

>>> import headwater as hw, pyarrow as pa
>>> c = hw.Circuit()
>>> c.input("t", pa.schema([("id", pa.int64())])).filter("id > 1").output("big")
>>> outputs = c.step(t=pa.table({"id": [1, 2, 3]}))
>>> outputs
Outputs(big: 2 rows)
>>> outputs["big"].to_arrow().to_pylist()
[{'id': 2, '_weight': 1}, {'id': 3, '_weight': 1}]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from headwater.base.change import ChangeBatch
from headwater.base.errors import NotFoundError
from headwater.incremental.dataflow.arguments import whole
from headwater.incremental.zset import ZSet

__all__ = ["Outputs"]

_CHUNK_ROWS = 65_536


class Outputs(Mapping[str, ChangeBatch]):
    """The changes of the outputs of a circuit, by name, consolidated."""

    __slots__ = ("_changes", "_zsets")

    def __init__(self, zsets: Mapping[str, ZSet]) -> None:
        self._zsets = dict(zsets)
        self._changes: dict[str, ChangeBatch] = {}

    def __getitem__(self, name: str) -> ChangeBatch:
        if name not in self._changes:
            self._changes[name] = self.zset(name).to_change()
        return self._changes[name]

    def zset(self, name: str) -> ZSet:
        """The change as the engine has it."""
        found = self._zsets.get(name)
        if found is None:
            raise NotFoundError.port("output", name, sorted(self._zsets))
        return found

    def chunks(self, name: str, rows: int = _CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
        """The change in batches of at most so many rows, each made when it is its turn."""
        step, all_rows = whole("rows", rows, 1), self.zset(name)

        def pieces() -> Iterator[pa.RecordBatch]:
            for start in range(0, len(all_rows), step):
                piece = ZSet(all_rows.layout, all_rows.rows[start : start + step], all_rows.owners)
                yield from piece.to_arrow().to_batches()

        return pieces()

    def __iter__(self) -> Iterator[str]:
        return iter(self._zsets)

    def __len__(self) -> int:
        return len(self._zsets)

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{n}: {len(z)} rows' for n, z in self._zsets.items())})"
