"""The hash is part of the format on disk: these numbers never change while HASH_VERSION is 1."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headwater.incremental.layout import Layout
from headwater.incremental.run import Run
from headwater.incremental.zset import ZSet
from headwater.kernels.hash import HASH_VERSION

_MASK = (1 << 64) - 1
_GOLDEN_RATIO = 0x9E3779B97F4A7C15


def _mix(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & _MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & _MASK
    return x ^ (x >> 33)


def _fold(h: int, x: int) -> int:
    return _mix((h * _GOLDEN_RATIO & _MASK) ^ x)


def _slot(text: bytes) -> int:
    first = len(text) | int.from_bytes(text[:4], "little") << 32
    h = _mix((first + _GOLDEN_RATIO) & _MASK)
    if len(text) <= 12:
        return _mix(h ^ (int.from_bytes(text[4:], "little") * _GOLDEN_RATIO & _MASK))
    whole = len(text) // 8 * 8
    for i in range(0, whole, 8):
        h = (h ^ int.from_bytes(text[i : i + 8], "little")) * 0xFF51AFD7ED558CCD & _MASK
        h ^= h >> 33
    return _mix((h ^ int.from_bytes(text[whole:], "little")) * _GOLDEN_RATIO & _MASK)


def _written_down(values: tuple[int | str | None, ...]) -> int:
    """The hash as its module describes it, in plain Python."""
    h = 0
    for value in values:
        if isinstance(value, str):
            h = _fold(h, _slot(value.encode()))
        else:
            h = _fold(h, ((value or 0) + _GOLDEN_RATIO) & _MASK) if value is not None else _fold(h, _null_of(values))
    nulls = sum(1 << i for i, value in enumerate(values) if value is None)
    return _fold(h, (nulls + _GOLDEN_RATIO) & _MASK) if nulls else h


def _null_of(values: tuple[int | str | None, ...]) -> int:
    """The words of a null are zero: those of a number, or of an empty string if there is another column (as in `_TWO`)."""
    return _GOLDEN_RATIO if len(values) == 1 else _slot(b"")


def _of(schema: pa.Schema, *values: object) -> int:
    table = pa.table([[v] for v in values], schema=schema)
    return int(ZSet.packed(Layout(schema, keys=len(schema)), table).hashes[0])


_WORD = pa.schema([pa.field("a", pa.int64(), False)])
_MAYBE = pa.schema([pa.field("a", pa.int64())])
_TEXT = pa.schema([pa.field("a", pa.string(), False)])
_TWO = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.string())])


def test_this_is_version_one() -> None:
    assert HASH_VERSION == 1


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63), 42])
def test_a_word_is_mixed_as_written_down_here(value: int) -> None:
    assert _of(_WORD, value) == _mix((value + _GOLDEN_RATIO) & _MASK)


GOLDEN = {
    "word": (_WORD, (42,), 0x2D1C8760F8047FC7),
    "maybe null": (_MAYBE, (42,), 0x2D1C8760F8047FC7),
    "null": (_MAYBE, (None,), 0xD695EAC8D33FC807),
    "empty text": (_TEXT, ("",), 0x365AFC61535B3920),
    "4 bytes": (_TEXT, ("abcd",), 0x50BFE6DC05018FA3),
    "12 bytes": (_TEXT, ("abcdefghijkl",), 0x5B16E9D74DBC855D),
    "13 bytes": (_TEXT, ("abcdefghijklm",), 0xA608A7FDFE6BCFD3),
    "40 bytes": (_TEXT, ("0123456789" * 4,), 0xD2E58C795EF23419),
    "two parts": (_TWO, (7, "abcdefghijklm"), 0x1A683260D86A938B),
    "a part that is null": (_TWO, (7, None), 0x022FA98302AE3B01),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    schema, values, expected = GOLDEN[name]
    assert hex(_of(schema, *values)) == hex(expected)
    assert hex(_written_down(values)) == hex(expected)


def test_it_does_not_depend_on_where_columns_and_strings_are() -> None:
    table = pa.table({"x": [1, 2], "s": ["y" * 30, None], "k": [5, None]})
    hashes = []
    for order in (["k", "s", "x"], ["k", "s"]):
        zset = ZSet.packed(Layout(pa.schema([table.schema.field(n) for n in order]), keys=2), table.select(order))
        hashes.append(sorted(zset.hashes.tolist()))
        hashes.append(sorted(Run.of(zset).zset().hashes.tolist()))
    assert all(h == hashes[0] for h in hashes)


def test_single_words_never_collide_and_spread_evenly() -> None:
    n = 200_000
    table = pa.table({"a": np.arange(n)}, schema=_WORD)
    hashes = ZSet.packed(Layout(_WORD, keys=1), table).hashes
    assert len(np.unique(hashes)) == n
    counts = np.bincount((hashes >> np.uint64(56)).astype(np.int64), minlength=256)
    assert counts.min() > 0.8 * n / 256
    assert counts.max() < 1.2 * n / 256


@pytest.mark.parametrize("words", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("nullable", [False, True])
def test_several_words_with_and_without_nulls(words: int, nullable: bool) -> None:
    """Keys of few words have loops of their own, which have to give what the rule gives."""
    rng = np.random.default_rng(words)
    values: list[list[int | None]] = [[int(x) for x in rng.integers(-(2**63), 2**63 - 1, 40)] for _ in range(words)]
    if nullable:
        for column in values:
            for i in np.flatnonzero(rng.random(40) < 0.3):
                column[int(i)] = None
    schema = pa.schema([pa.field(f"c{i}", pa.int64(), nullable) for i in range(words)])
    table = pa.table([pa.array(column, pa.int64()) for column in values], schema=schema)
    hashes = ZSet.packed(Layout(schema, keys=words), table).hashes.tolist()
    for got, row in zip(hashes, zip(*values, strict=True), strict=True):
        h = 0
        for value in row:
            h = _fold(h, ((value or 0) + _GOLDEN_RATIO) & _MASK)
        nulls = sum(1 << i for i, value in enumerate(row) if value is None)
        assert got == (_fold(h, (nulls + _GOLDEN_RATIO) & _MASK) if nulls else h)
