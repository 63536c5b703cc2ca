"""Manifests: any damage is found, and later versions are refused."""

from __future__ import annotations

import json

import pytest

from headwater.base.errors import CorruptionError
from headwater.incremental.manifest import VERSION, Manifest, RunEntry, TraceEntry

MANIFEST = Manifest(
    "000000000001.json",
    12,
    {"orders": TraceEntry("(id int64) key 1", (3, -7), (RunEntry("a.run", 5, 640), RunEntry("b.run", 1, 448)))},
    {"orders": 42, "text": "Grüße"},
)


def read(data: bytes) -> Manifest:
    return Manifest.decode(MANIFEST.name, data, "folder")


def test_a_manifest_comes_back() -> None:
    back = read(MANIFEST.encode())
    assert back == MANIFEST
    assert back.files == {"a.run", "b.run"}
    assert back.traces["orders"].rows == 6


def test_what_is_changed_or_cut_anywhere_is_refused() -> None:
    good = MANIFEST.encode()
    white = b" \n\t\r"
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 2
        if good[at] in white and bad[at] in white:
            continue  # JSON does not look at it, and neither do we
        try:
            assert read(bytes(bad)) == MANIFEST  # a digit of an escape may change its case only
        except CorruptionError as e:
            assert e.hint
    for end in range(len(good) - 2):
        with pytest.raises(CorruptionError):
            read(good[:end])


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"format": "delta"}', '{"format": "headwater state"}'])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(CorruptionError, match=r"000000000001\.json"):
        read(text.encode())


@pytest.mark.parametrize("version", ["one", 0, None, -1])
def test_no_version_at_all(version: object) -> None:
    with pytest.raises(CorruptionError, match="version"):
        read(json.dumps({"format": "headwater state", "version": version}).encode())


def test_a_later_version_is_refused() -> None:
    facts = json.loads(MANIFEST.encode()) | {"version": VERSION + 1}
    with pytest.raises(CorruptionError) as caught:
        read(json.dumps(facts).encode())
    assert caught.value.code == "E5010"


def test_what_is_missing_from_it_is_corruption_and_no_key_error() -> None:
    import zlib

    for missing in ("epoch", "traces", "extra"):
        facts = json.loads(MANIFEST.encode())
        del facts[missing], facts["checksum"]
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        facts["checksum"] = f"{zlib.crc32(text.encode()):08x}"
        with pytest.raises(CorruptionError, match="cannot be read"):
            read(json.dumps(facts).encode())
