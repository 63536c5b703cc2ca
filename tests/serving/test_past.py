"""What an online table answered at a moment: as_of gives the bytes that fetch gave, over corrections and deletions."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.amounts import everyday
from tests.serving.stock import Stock

import headwater as hw
from headwater.base.errors import InputError, NotFoundError
from headwater.serving.online import Online

KEYS = [(n, code) for n in range(12) for code in ("", "x", "Ünïcode")]


def keys(rng: random.Random) -> dict[str, list[Any]]:
    some = rng.sample(KEYS, 8)
    return {"id": [n for n, _ in some], "code": [code for _, code in some]}


def logged(online: Online, rng: random.Random) -> tuple[datetime, dict[str, list[Any]], dict[str, Any], Any]:
    """A fetch, as a server would log it."""
    asked = keys(rng)
    options: dict[str, Any] = {
        "columns": rng.choice([None, ["name", "price"], ["vector", "open"]]),
        "status": rng.random() < 0.5,
        "missing": rng.choice(["null", "null", "drop"]),
    }
    time.sleep(0.002)  # a version is known by its millisecond
    return datetime.now(UTC), asked, options, online.fetch(asked, **options)


def body(answer: Any) -> bytes:
    return bytes(answer)


@pytest.mark.long
@pytest.mark.parametrize("ordered", [False, True])
def test_the_bytes_of_the_past_are_those_that_were_served(tmp_path: Path, *, ordered: bool) -> None:
    rng = random.Random(4 + ordered)
    stock = Stock(tmp_path, 2, ordered=ordered)
    online = stock.open("stock_online")
    online.refresh()
    log = [logged(online, rng)]
    for _ in range(everyday(40, soak=400)):
        stock.commit(rng)
        if rng.random() < 0.8:
            online.refresh()
        log.append(logged(online, rng))
        if rng.random() < 0.1:
            online.compact()
    again = stock.lake.online("stock_online")
    assert len(again.log.numbers()) < 30 < len({answer.frontier for *_, answer in log}) + 10
    for at, asked, options, served in log:
        for known_at in (at, served.versions["stock_online"]):
            past = again.as_of(asked, known_at=known_at, **options)
            assert body(past) == body(served), at
            assert past.frontier == served.frontier


def test_each_label_has_a_moment_of_its_own(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    spend = lake.write("spend", pa.table({"id": [1, 2], "total": [5, 6]}))
    online = lake.online("features", "spend", key="id", refresh=True)
    moments = []
    for total in (7, 8):
        time.sleep(0.002)
        moments.append(datetime.now(UTC))
        time.sleep(0.002)
        spend.update({"total": str(total)}, where="id = 1")
        online.refresh()
    time.sleep(0.002)
    moments.append(datetime.now(UTC))
    labels = pa.table({"id": [1, 1, 3, 1], "at": [moments[2], moments[0], moments[1], moments[1]]})
    found = online.as_of(labels, known_at="at")
    assert found.column("total").to_pylist() == [8, 5, None, 7]
    assert found.column("_found").to_pylist() == [True, True, False, True]
    versions = found.column("_version").to_pylist()
    assert versions[1] < versions[2] == versions[3] < versions[0]
    assert online.as_of(labels.slice(0, 0), known_at="at").num_rows == 0
    with pytest.raises(NotFoundError, match="published nothing"):
        online.as_of([1], known_at=moments[0] - timedelta(days=1))
    with pytest.raises(InputError, match="known_at"):
        online.as_of([1], known_at="yesterday")


def test_the_age_of_a_row_is_judged_at_the_moment(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    now = datetime.now(UTC)
    lake.write("spend", pa.table({"id": [1], "total": [5], "seen": [now]}))
    online = lake.online("features", "spend", key="id", ttl="1 hour", event_time="seen", refresh=True)
    fresh = online.as_of([1], known_at=datetime.now(UTC), status=True)
    assert fresh.to_pylist()[0]["total"] == 5
    stale = online.as_of([1], known_at=now + timedelta(hours=2), status=True)
    assert stale.to_pylist()[0]["total"] is None
    assert stale.status("total").tolist() != fresh.status("total").tolist()


@pytest.mark.long
def test_a_source_that_was_made_again_cannot_say_what_it_was(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("spend", pa.table({"id": [1], "total": [5]}))
    online = lake.online("features", "spend", key="id", refresh=True)
    first = online.fetch([1]).versions["features"]
    lake.catalog.drop("spend")
    spend = lake.write("spend", pa.table({"id": [1], "total": [6]}))
    for total in range(30):
        online.refresh()
        spend.update({"total": str(total)})
    with pytest.raises(NotFoundError, match="another table"):
        online.as_of([1], known_at=first)
