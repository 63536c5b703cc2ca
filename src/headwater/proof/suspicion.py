"""Suspicion: what must not be left of an erased key, and how it looks in rows, in texts and in bytes.

A key's values are looked for under the columns that hold them. Of the rows that are erased, strings that no other row
of their table has (an address, a name) are looked for everywhere, in whatever column or file. Short strings and small
numbers mean nothing by themselves: they are looked for beside the name of their column, and in decoded columns, not as
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headwater.lake import partitions
from headwater.lake.snapshot import Snapshot
from headwater.proof.key import Key

__all__ = ["KeySuspicion", "Wanted"]

LEAST_TEXT = 4
"""Strings of fewer characters are no evidence by themselves."""
LEAST_NUMBER = 1 << 24
"""Numbers below this may stand anywhere by chance."""


@dataclass(frozen=True)
class Wanted:
    """What is looked for everywhere: strings, and numbers that are large enough to be evidence."""

    texts: tuple[str, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, key: Key, texts: Collection[str]) -> Wanted:
        """What a key and the distinctive strings of its rows come to."""
        plain = [value.as_py() for value in key.values.values() if value.is_valid]
        own = [one for one in plain if isinstance(one, str) and len(one) >= LEAST_TEXT]
        whole = [one for one in plain if isinstance(one, int) and not isinstance(one, bool)]
        return cls(tuple(sorted({*own, *texts})), tuple(n for n in whole if abs(n) >= LEAST_NUMBER))

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(
            tuple(sorted({*self.texts, *other.texts})), tuple(sorted({*self.numbers, *other.numbers}))
        )  # fmt: skip

    @cached_property
    def patterns(self) -> tuple[bytes, ...]:
        """The bytes that each of them may be stored as."""
        found = {text.encode() for text in self.texts}
        found |= {text.encode("unicode_escape") for text in self.texts}
        found |= {
            number.to_bytes(8, "little", signed=True) for number in self.numbers if -(1 << 63) <= number < 1 << 63
        }
        found |= {str(number).encode() for number in self.numbers}
        return tuple(sorted(found))

    @cached_property
    def _text(self) -> re.Pattern[str] | None:
        parts = [re.escape(text) for text in self.texts]
        parts += [rf"(?<!\d){number}(?!\d)" for number in self.numbers]
        return re.compile("|".join(parts)) if parts else None

    def in_text(self, text: str) -> bool:
        """Whether a text has one of them."""
        return self._text is not None and self._text.search(text) is not None

    def in_rows(self, rows: pa.RecordBatch | pa.Table) -> bool:
        """Whether a value of some rows, also inside lists and structs, has one of them."""
        return any(self._in_column(column) for name in rows.schema.names for column in _flat(rows.column(name)))

    def _in_column(self, column: pa.Array) -> bool:
        kind = column.type
        if self.texts and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return bool(pc.any(pc.match_substring_regex(column, "|".join(map(_re2, self.texts)))).as_py())
        if self.numbers and (pa.types.is_integer(kind)):
            wanted = pa.array(self.numbers, pa.int64())
            return bool(pc.any(pc.is_in(column.cast(pa.int64(), safe=False), wanted)).as_py())
        return False


@dataclass(frozen=True)
class KeySuspicion:
    """A key's rows in the files and the log of one table: what `headwater.lake.erasure` erases.

    Parameters
    ----------
    key : Key, optional
        under the names that this table has for its columns; None where its rows cannot be told by them
    physical : mapping of str to tuple of str
        what each of these columns may be called in files
    wanted : Wanted
        what is looked for in all columns
    whole_past : bool
        whether all that only older versions have goes
    """

    key: Key | None
    physical: Mapping[str, tuple[str, ...]]
    wanted: Wanted
    whole_past: bool = False

    @classmethod
    def of(cls, base: Snapshot, key: Key | None, wanted: Wanted, *, whole_past: bool = False) -> KeySuspicion:
        """What is looked for in a table."""
        names = {} if key is None else {
            name: tuple({name, base.schema.field(name).physical_name}) for name in key.columns
        }  # fmt: skip
        return cls(key, names, wanted, whole_past)

    @property
    def columns(self) -> Collection[str] | None:
        """All where strings are looked for, else those of the key."""
        if self.wanted.texts or self.wanted.numbers or self.key is None:
            return None
        return {one for names in self.physical.values() for one in names}

    def of_rows(self, rows: pa.RecordBatch, values: Mapping[str, str | None]) -> bool:
        """Whether rows of a file have the key, or one of the strings."""
        return self._has_key(rows, values) or self.wanted.in_rows(rows)

    def _has_key(self, rows: pa.RecordBatch, values: Mapping[str, str | None]) -> bool:
        return bool(rows.num_rows) and bool(pc.any(self.mask(rows, values)).as_py())

    def mask(self, rows: pa.RecordBatch, values: Mapping[str, str | None]) -> pa.Array:
        """Which rows of a file have the key."""
        met = pa.repeat(self.key is not None, rows.num_rows)
        for name, value in () if self.key is None else self.key.values.items():
            column = next((rows.column(one) for one in self.physical[name] if one in rows.schema.names), None)
            if column is not None:
                same = pc.equal(column.cast(value.type), value) if value.is_valid else pc.is_null(column)
                met = pc.and_(met, pc.fill_null(same, False))
                continue
            there = next((values[one] for one in self.physical[name] if one in values), None)
            stored = partitions.serialize(value.as_py(), value.type) if value.is_valid else None
            if there != stored:
                return pa.repeat(False, rows.num_rows)
        return met

    def of_text(self, text: str) -> bool:
        """Whether a text of the log or a path tells of the key."""
        return self.wanted.in_text(text) or any(pattern.search(text) for pattern in self._beside)

    @cached_property
    def _beside(self) -> tuple[re.Pattern[str], ...]:
        """The values beside the names of their columns: in statistics, partition values, paths and conditions."""
        if self.key is None:
            return ()
        found = []
        for name, value in self.key.values.items():
            if value.is_valid:
                names = "|".join(re.escape(one) for one in self.physical[name])
                spelled = {str(value.as_py()), partitions.serialize(value.as_py(), value.type) or ""} - {""}
                values = "|".join(re.escape(one) for one in sorted(spelled))
                found.append(re.compile(rf"(?:{names})\W{{1,12}}(?:{values})(?!\w)"))
        return tuple(found)


def _flat(column: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """The plain values of a column, of those inside lists, maps and structs, too."""
    chunks: Sequence[pa.Array] = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        kind = chunk.type
        if pa.types.is_dictionary(kind):
            yield from _flat(chunk.dictionary)
        elif pa.types.is_struct(kind):
            for child in chunk.flatten():
                yield from _flat(child)
        elif pa.types.is_map(kind):
            yield from _flat(chunk.keys)
            yield from _flat(chunk.items)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            yield from _flat(chunk.flatten())
        elif pa.types.is_binary(kind) or pa.types.is_string_view(kind):
            yield chunk.cast(pa.large_binary()).cast(pa.large_string(), safe=False) if _is_text(chunk) else chunk
        else:
            yield chunk


def _is_text(chunk: pa.Array) -> bool:
    try:
        chunk.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _re2(text: str) -> str:
    """A string as a regular expression of Arrow's."""
    return re.sub(r"([^\w\s])", r"\\\1", text)
