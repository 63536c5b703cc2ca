"""The state of a circuit that cannot be used: damaged, foreign, of another version or layout, or taken."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.incremental.layout import Layout
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet
from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
LAYOUT = Layout(pa.schema([pa.field("id", pa.int64(), nullable=False)]), keys=1)
RUN = "0123456789abcdef0123456789abcdef.run"
CHECKPOINT = "000000000001.json"


def stored(lake: Lake) -> Path:
    """A state with one run, whose file has a name that does not change from test to test."""
    folder = Path(lake.location) / "_state"
    with Store(folder) as store:
        trace = Trace(LAYOUT)
        trace.add(ZSet.packed(LAYOUT, pa.table({"id": [1, 2, 3]}, schema=LAYOUT.schema)))
        store.checkpoint(1, {"orders": trace})
        (run,) = (folder / "runs").iterdir()
        run.rename(folder / "runs" / RUN)
        assert trace.runs[0].file is not None
        trace.runs[0].file.path = str(folder / "runs" / RUN)
        store.checkpoint(2, {"orders": trace})
    (folder / "manifests" / "000000000002.json").replace(folder / "manifests" / CHECKPOINT)
    return folder


def restoring(folder: Path, *, name: str | None = None, trace: str = "orders", layout: Layout = LAYOUT) -> Attempt:
    def attempt() -> None:
        store = Store(folder, read_only=True)
        manifest = store.restore(name)
        store.trace(manifest, trace, layout)
        store.verify(manifest)

    return attempt


def change(path: Path, at: int, to: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(to)] = to
    path.write_bytes(data)


def case_run_file_that_is_missing(lake: Lake) -> Attempt:
    folder = stored(lake)
    (folder / "runs" / RUN).unlink()
    return restoring(folder)


def case_run_file_that_ends_early(lake: Lake) -> Attempt:
    folder = stored(lake)
    os.truncate(folder / "runs" / RUN, 500)
    return restoring(folder)


def case_run_file_with_a_wrong_checksum(lake: Lake) -> Attempt:
    folder = stored(lake)
    change(folder / "runs" / RUN, 330, b"\xff")
    return restoring(folder)


def case_run_file_of_something_else(lake: Lake) -> Attempt:
    folder = stored(lake)
    (folder / "runs" / RUN).write_bytes(b"PAR1" * 200)
    return restoring(folder)


def case_run_file_of_a_later_version(lake: Lake) -> Attempt:
    folder = stored(lake)
    change(folder / "runs" / RUN, 8, b"\x07")
    return restoring(folder)


def case_state_of_another_layout(lake: Lake) -> Attempt:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False)])
    return restoring(stored(lake), layout=Layout(schema, keys=1))


def case_checkpoint_of_the_state_that_is_damaged(lake: Lake) -> Attempt:
    folder = stored(lake)
    manifest = folder / "manifests" / CHECKPOINT
    manifest.write_text(manifest.read_text().replace('"epoch":2', '"epoch":3'))
    return restoring(folder)


def case_checkpoint_of_the_state_that_is_not_there(lake: Lake) -> Attempt:
    return restoring(stored(lake), name="000000000010.json")


def case_state_without_a_checkpoint(lake: Lake) -> Attempt:
    folder = stored(lake)
    (folder / "manifests" / CHECKPOINT).unlink()
    return restoring(folder)


def case_trace_that_the_state_does_not_have(lake: Lake) -> Attempt:
    return restoring(stored(lake), trace="order")


def case_state_that_is_written_already(lake: Lake) -> Attempt:
    folder = stored(lake)
    taken = Store(folder)

    def attempt() -> None:
        assert taken.manifests()
        Store(folder)

    return attempt


def case_state_that_was_opened_to_read(lake: Lake) -> Attempt:
    store = Store(stored(lake), read_only=True)
    return lambda: store.checkpoint(3, {})


def case_extra_that_json_cannot_hold(lake: Lake) -> Attempt:
    store = Store(stored(lake))
    return lambda: store.checkpoint(3, {}, {1, 2})


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
