"""Training sets over what is derived: a row of a view or a feature table was known when it was published, not before."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError
from headwater.lake.history import commit_times
from headwater.lakehouse import Lake

START = datetime(2026, 1, 1, tzinfo=UTC)
PAYMENTS = pa.schema([("card", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("amount", pa.int64())])
SPENT = "SELECT card, ts, sum(amount) AS spent, count(*) AS n FROM payments GROUP BY card, ts"


class Shop:
    """Payments that come late, are corrected and deleted, and a view of them that is refreshed now and then."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lake: Lake = hw.connect(folder)
        self.payments = self.lake.write("payments", self._rows(10))
        self.view = self.lake.view("spent", SPENT, refresh=True)
        for _ in range(12):
            self._change()
            time.sleep(0.002)  # commits of one millisecond are one moment to those who ask
            if self.rng.random() < 0.6:
                self.view.refresh()
                time.sleep(0.002)
        self.view.refresh()

    def _rows(self, count: int) -> pa.Table:
        rng = self.rng
        rows = [
            {
                "card": rng.choice("ab"),
                "ts": START + timedelta(minutes=rng.randrange(8)),
                "amount": rng.randrange(1, 50),
            }
            for _ in range(count)
        ]
        return pa.Table.from_pylist(rows, PAYMENTS)

    def _change(self) -> None:
        card = f"card = '{self.rng.choice('ab')}'"
        kind = self.rng.choice(["append", "append", "update", "delete"])
        if kind == "append":
            self.payments.append(self._rows(3))
        elif kind == "update":
            self.payments.update({"amount": "amount + 100"}, where=f"{card} AND amount % 3 = 0")
        else:
            self.payments.delete(f"{card} AND amount % 4 = 1")

    def labels(self, count: int) -> pa.Table:
        """Labels that were asked for at any moment of the view and of its source."""
        moments = sorted(
            {*commit_times(self.view.table.storage).values(), *commit_times(self.payments.storage).values()}
        )
        rows = []
        for number in range(count):
            ms = self.rng.choice([*moments, self.rng.randint(moments[0] - 5, moments[-1] + 5)])
            row = {"id": number, "card": self.rng.choice("abc"), "at": START + timedelta(minutes=self.rng.randrange(9))}
            rows.append(row | {"known": datetime.fromtimestamp(ms / 1000, UTC)})
        return pa.Table.from_pylist(rows)

    def replayed(self, label: dict[str, Any]) -> tuple[Any, ...]:
        """What the view's table showed at the label's moment, by the plainest way there is."""
        try:
            rows = self.lake.table("spent").at(timestamp=label["known"]).to_pylist()
        except HeadwaterError:
            return None, None, None
        rows = [r for r in rows if r["card"] == label["card"] and r["ts"] <= label["at"]]
        last = max(rows, key=lambda r: r["ts"], default=dict.fromkeys(("ts", "spent", "n")))
        return last["ts"], last["spent"], last["n"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_view_is_known_when_it_was_published(tmp_path: Path, seed: int) -> None:
    shop = Shop(tmp_path, seed)
    labels = shop.labels(60)
    features = shop.lake.stream("spent", time="ts", by="card")
    found = shop.lake.training_set(labels, features, time="at", by="card", known_at="known").to_pylist()
    by_id = {row["id"]: (row["ts"], row["spent"], row["n"]) for row in found}
    assert by_id == {label["id"]: shop.replayed(label) for label in labels.to_pylist()}
    assert len(set(by_id.values())) > 8, "labels have to see different versions"
    # By its name, and by its handle, where the columns of labels are called as those of the view.
    same = labels.rename_columns(["id", "card", "ts", "known"])
    for given in ("spent", shop.view):
        named = shop.lake.training_set(same, given, time="ts", by="card", known_at="known").to_pylist()
        assert {row["id"]: (row["ts_spent"], row["spent"], row["n"]) for row in named} == by_id


def test_a_feature_table_says_itself_what_was_known(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    rows = {"card": ["a"], "ts": [START], "amount": [5]}
    payments = lake.write("payments", pa.table(rows))

    def spent(lake: Any) -> Any:
        return lake.stream("payments", time="ts", by="card").cumulative(spent="sum(amount)")

    table = lake.features("spent", spent, refresh=True)
    payments.append(pa.table({"card": ["a"], "ts": [START + timedelta(hours=1)], "amount": [7]}))
    time.sleep(0.002)
    between = datetime.now(UTC)
    time.sleep(0.002)
    table.refresh()
    time.sleep(0.002)
    day = START + timedelta(days=1)
    labels = pa.table({"card": ["a", "a"], "ts": [day] * 2, "known": [between, datetime.now(UTC)]})
    found = table.as_of(labels, known_at="known").to_arrow().sort_by("known")
    assert found["spent"].to_pylist() == [5, 12]
    wanted = lake.training_set(labels, "spent", time="ts", by="card", known_at="known").to_arrow().sort_by("known")
    assert found.equals(wanted)
    other = labels.rename_columns(["card", "at", "known"])
    assert table.as_of(other, known_at=between, time="at").to_arrow()["spent"].to_pylist() == [5, 5]
    near = table.as_of(lake.stream(other, time="at", by="card"), tolerance="1 hour").to_arrow()
    assert near["spent"].to_pylist() == [None, None]
    assert table.as_of(labels).report.rows == 2
    with pytest.raises(InputError, match="known_at"):
        table.as_of(labels, known_at=3)
    # A handle that another process opens by its name does the same.
    assert hw.connect(tmp_path).features("spent").as_of(labels, known_at="known").to_arrow().num_rows == 2
