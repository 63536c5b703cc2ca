"""Numbers that all processes of a server share: one anonymous mapping, made before the first fork.

Any worker may be asked for the metrics of the whole server, and a worker that dies must not take its counts with it. So
numbers lie in memory that all processes map. Each process writes only to its own region, so nothing is locked and no
count is lost; whoever reads adds the regions up. A process that is started in the place of another goes on with its
region, so counters never go back.

A region has room for some tables. A table's part begins with its name, which is written last when the part is taken,
so a reader never sees a part that is not whole. Tables that find no room are counted together, as `OTHERS`.

    region = slot * SLOTS
    slot   = name (length: 16 bits, bytes: 254) | note (sequence: 64 bits, length: 64 bits, bytes: 1008)
             | numbers (64 bits each)

A note is a short text, such as why a table could not be refreshed. It is guarded by its sequence, which is odd while it
is written: a reader that sees it odd, or changed, reads again.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence

__all__ = ["OTHERS", "CounterSlot", "SharedCounters"]

OTHERS = "_others"

_NAME_BYTES = 256
_NOTE_BYTES = 1024
_NOTE_TEXT = _NOTE_BYTES - 16
_HEAD_BYTES = _NAME_BYTES + _NOTE_BYTES
_ATTEMPTS = 1000


class CounterSlot:
    """The numbers of one table in one process; ``numbers`` is a view of 64-bit integers to be read and written."""

    __slots__ = ("_memory", "_start", "name", "numbers")

    def __init__(self, memory: memoryview, start: int, name: str, count: int) -> None:
        self._memory, self._start, self.name = memory, start, name
        begin = start + _HEAD_BYTES
        self.numbers: memoryview = memory[begin : begin + 8 * count].cast("q")

    @property
    def note(self) -> str:
        """The text that was noted last; empty if there is none."""
        at = self._start + _NAME_BYTES
        for _ in range(_ATTEMPTS):
            before, length = struct.unpack_from("<QQ", self._memory, at)
            text = bytes(self._memory[at + 16 : at + 16 + min(length, _NOTE_TEXT)])
            (after,) = struct.unpack_from("<Q", self._memory, at)
            if before == after and before % 2 == 0:
                return text.decode("utf-8", "replace")
        return ""  # whoever wrote it died half-way

    @note.setter
    def note(self, text: str) -> None:
        at = self._start + _NAME_BYTES
        encoded = text.encode()[:_NOTE_TEXT].decode("utf-8", "ignore").encode()
        (sequence,) = struct.unpack_from("<Q", self._memory, at)
        sequence |= 1  # of one that died half-way, the sequence is odd already
        struct.pack_into("<Q", self._memory, at, sequence)
        self._memory[at + 16 : at + 16 + len(encoded)] = encoded
        struct.pack_into("<QQ", self._memory, at, sequence + 1, len(encoded))


class SharedCounters:
    """Regions of numbers by table, one for each process.

    >>> counters = SharedCounters(regions=2, tables=4, numbers=3)
    >>> counters.slot(0, "spend").numbers[1] += 5
    >>> counters.slot(1, "spend").numbers[1] += 2
    >>> [(region, slot.name, slot.numbers[1]) for region, slot in counters.slots()]
    [(0, 'spend', 5), (1, 'spend', 2)]
    """

    def __init__(self, *, regions: int, tables: int, numbers: int) -> None:
        self.regions = regions
        self._tables = tables + 1  # the last one is for those that find no room
        self._numbers = numbers
        self._slot_bytes = _HEAD_BYTES + 8 * numbers
        self._region_bytes = self._slot_bytes * self._tables
        self._map = mmap.mmap(-1, self._region_bytes * regions)
        self._memory = memoryview(self._map)
        self._known: dict[tuple[int, str], CounterSlot] = {}

    def slot(self, region: int, name: str) -> CounterSlot:
        """The slot of a table in a region, taken if it is new. Only the region's own process may call this."""
        found = self._known.get((region, name))
        if found is not None:
            return found
        for place in range(self._tables - 1):
            have = self._name(region, place)
            if have is None:
                found = self._take(region, place, name)
            elif have == name:
                found = self._open(region, place, name)
            if found is not None:
                self._known[region, name] = found
                return found
        last = self._tables - 1
        return (
            self._take(region, last, OTHERS) if self._name(region, last) is None else self._open(region, last, OTHERS)
        )

    def slots(self) -> Iterator[tuple[int, CounterSlot]]:
        """All slots that are taken, with their regions."""
        for region in range(self.regions):
            for place in range(self._tables):
                name = self._name(region, place)
                if name is not None:
                    yield region, self._open(region, place, name)

    def sums(self) -> dict[str, Sequence[int]]:
        """The numbers of each table, added over all regions."""
        found: dict[str, list[int]] = {}
        for _, slot in self.slots():
            numbers = slot.numbers.tolist()
            have = found.get(slot.name)
            found[slot.name] = numbers if have is None else [a + b for a, b in zip(have, numbers, strict=True)]
        return dict(found)

    def notes(self) -> dict[str, str]:
        """The notes of tables that have one; of several regions, the last."""
        return {slot.name: slot.note for _, slot in self.slots() if slot.note}

    def _start(self, region: int, place: int) -> int:
        assert 0 <= region < self.regions
        return region * self._region_bytes + place * self._slot_bytes

    def _name(self, region: int, place: int) -> str | None:
        start = self._start(region, place)
        (length,) = struct.unpack_from("<H", self._memory, start)
        if not length:
            return None
        return bytes(self._memory[start + 2 : start + 2 + length]).decode()

    def _take(self, region: int, place: int, name: str) -> CounterSlot:
        encoded = name.encode()
        assert 0 < len(encoded) <= _NAME_BYTES - 2
        start = self._start(region, place)
        self._memory[start + 2 : start + 2 + len(encoded)] = encoded
        struct.pack_into("<H", self._memory, start, len(encoded))
        return self._open(region, place, name)

    def _open(self, region: int, place: int, name: str) -> CounterSlot:
        return CounterSlot(self._memory, self._start(region, place), name, self._numbers)
