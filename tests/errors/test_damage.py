"""What lies on storage is damaged: logs, checkpoints, data files, deletion vectors; or asks for too much."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.base import settings
from headwater.lake import snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]


def damaged(lake: Lake) -> Table:
    t = lake.write("orders", ROWS)
    t.append([{"id": 3, "amount": 30}])
    t.append([{"id": 4, "amount": 40}])
    snapshot.forget(t.storage)
    return t


def entry(t: Table, version: int) -> Path:
    return Path(t.location) / f"_delta_log/{version:020d}.json"


def data_file(t: Table) -> Path:
    return next(Path(t.location).glob("*.parquet"))


def vector_file(t: Table) -> Path:
    with settings.override(small_vector_bytes=0):
        t.delete("id = 1")
    snapshot.forget(t.storage)
    return next(Path(t.location).glob("*.bin"))


def case_log_entry_that_is_not_json(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 1).write_text("{not json}\n")
    return t.to_arrow


def case_log_entry_that_ends_early(lake: Lake) -> Attempt:
    t = damaged(lake)
    os.truncate(entry(t, 2), entry(t, 2).stat().st_size - 20)
    return t.to_arrow


def case_log_entry_that_is_empty(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 2).write_bytes(b"")
    return lambda: t.append(ROWS)


def case_log_entry_of_bytes(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 1).write_bytes(bytes(range(128, 256)))
    return t.to_arrow


def case_log_entry_that_is_a_list(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 1).write_text("[1, 2]\n")
    return t.to_arrow


def case_log_entry_without_a_path(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 1).write_text('{"add": {"size": 3}}\n')
    return t.to_arrow


def case_log_entry_with_a_bad_schema(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 1).write_text('{"metaData": {"id": "x", "schemaString": "{"}}\n')
    return t.to_arrow


def case_log_entry_with_an_unknown_type(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 0).write_text(entry(t, 0).read_text().replace('\\"long\\"', '\\"hugeint\\"'))
    return t.to_arrow


def case_gap_in_the_log(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 1).unlink()
    return t.to_arrow


def case_log_without_its_beginning(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 0).unlink()
    return t.to_arrow


def case_log_without_metadata(lake: Lake) -> Attempt:
    t = damaged(lake)
    entry(t, 0).write_text('{"commitInfo": {}}\n')
    return t.to_arrow


def with_checkpoint_only(lake: Lake) -> tuple[Table, Path]:
    t = damaged(lake)
    t.checkpoint()
    for version in range(3):
        entry(t, version).unlink()
    snapshot.forget(t.storage)
    return t, Path(t.location) / f"_delta_log/{2:020d}.checkpoint.parquet"


def case_checkpoint_that_is_damaged(lake: Lake) -> Attempt:
    t, checkpoint = with_checkpoint_only(lake)
    checkpoint.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    return t.to_arrow


def case_checkpoint_that_ends_early(lake: Lake) -> Attempt:
    t, checkpoint = with_checkpoint_only(lake)
    os.truncate(checkpoint, checkpoint.stat().st_size // 2)
    return t.to_arrow


def case_data_file_that_ends_early(lake: Lake) -> Attempt:
    t = damaged(lake)
    file = data_file(t)
    os.truncate(file, file.stat().st_size - 9)
    return t.to_arrow


def case_data_file_that_is_empty(lake: Lake) -> Attempt:
    t = damaged(lake)
    data_file(t).write_bytes(b"")
    return t.to_arrow


def case_data_file_with_damaged_pages(lake: Lake) -> Attempt:
    t = lake.write("orders", pa.table({"id": [i * 7919 % 10_007 for i in range(5000)]}))
    file = data_file(t)
    content = bytearray(file.read_bytes())
    content[4:600] = b"\xff" * 596
    file.write_bytes(content)
    return t.to_arrow


def case_data_file_that_is_missing(lake: Lake) -> Attempt:
    t = damaged(lake)
    data_file(t).unlink()
    return t.to_arrow


def case_update_of_a_data_file_that_is_missing(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    data_file(t).unlink()
    return lambda: t.update({"amount": "0"})


def case_vector_file_that_is_missing(lake: Lake) -> Attempt:
    t = damaged(lake)
    vector_file(t).unlink()
    return t.to_arrow


def case_vector_at_a_place_that_cannot_be_opened(lake: Lake) -> Attempt:
    t = damaged(lake)
    vector_file(t)
    text = entry(t, 3).read_text()
    vector = re.sub(
        '"storageType":"u","pathOrInlineDv":"[^"]*"', '"storageType":"p","pathOrInlineDv":"wasb://data/x.bin"', text
    )
    entry(t, 3).write_text(vector)
    snapshot.forget(t.storage)
    return t.to_arrow


def case_vector_file_that_ends_early(lake: Lake) -> Attempt:
    t = damaged(lake)
    file = vector_file(t)
    os.truncate(file, file.stat().st_size - 5)
    return t.to_arrow


def case_vector_file_with_a_wrong_checksum(lake: Lake) -> Attempt:
    t = damaged(lake)
    file = vector_file(t)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    return t.to_arrow


def case_vector_that_is_not_readable_text(lake: Lake) -> Attempt:
    t = damaged(lake)
    t.delete("id = 1")
    text = entry(t, 3).read_text()
    start = text.rindex('"pathOrInlineDv":"') + len('"pathOrInlineDv":"')
    entry(t, 3).write_text(text[:start] + "~" + text[start + 1 :])
    snapshot.forget(t.storage)
    return t.to_arrow


def with_protocol(lake: Lake, **protocol: Any) -> Table:
    t = lake.write("orders", ROWS)
    action = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": [], **protocol}
    entry(t, 1).write_text(json.dumps({"protocol": action}) + "\n")
    return t


def case_reader_feature_that_is_not_known(lake: Lake) -> Attempt:
    t = with_protocol(lake, readerFeatures=["timeMachine"], writerFeatures=["timeMachine"])
    return t.to_arrow


def case_writer_feature_that_is_not_known(lake: Lake) -> Attempt:
    t = with_protocol(lake, writerFeatures=["icebergWriterCompatV9"])
    assert t.count() == 2
    return lambda: t.append(ROWS)


def case_reader_version_that_is_not_known(lake: Lake) -> Attempt:
    t = with_protocol(lake, minReaderVersion=4)
    return t.to_arrow


def case_vacuum_with_a_writer_feature_that_is_not_known(lake: Lake) -> Attempt:
    t = with_protocol(lake, writerFeatures=["icebergWriterCompatV9"])
    return lambda: t.vacuum(retention_hours=0, enforce_retention=False)


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)


def test_a_damaged_checkpoint_is_passed_over_while_the_commits_are_there(tmp_path: Path) -> None:
    import headwater as hw

    t = damaged(hw.connect(tmp_path))
    t.checkpoint()
    (Path(t.location) / f"_delta_log/{2:020d}.checkpoint.parquet").write_bytes(b"PAR1nothing")
    snapshot.forget(t.storage)
    assert t.count() == 4
    t.append(ROWS)
    assert t.count() == 6


@pytest.mark.parametrize("stats", ["{", "[]", '{"numRecords": "many"}', '{"numRecords": null}', "", "null"])
def test_damaged_statistics_cost_time_and_no_rows(tmp_path: Path, stats: str) -> None:
    import headwater as hw

    t = damaged(hw.connect(tmp_path))
    lines = [json.loads(line) for line in entry(t, 1).read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = stats
    entry(t, 1).write_text("\n".join(map(json.dumps, lines)))
    snapshot.forget(t.storage)
    assert t.count() == 4
    assert t.to_arrow(where="id = 3").num_rows == 1
    t.delete("id = 3")
    t.update({"amount": "0"}, where="id > 1")
    t.optimize()
    assert sorted(r["id"] for r in t.to_pylist()) == [1, 2, 4]


def test_versions_before_a_damaged_log_entry_can_be_read(tmp_path: Path) -> None:
    import headwater as hw

    t = damaged(hw.connect(tmp_path))
    entry(t, 2).write_text("{")
    assert hw.connect(tmp_path).table("orders").at(version=1).count() == 3
