"""Trace: what one row did, found in several ways that have to agree, and against a lake in which it did not happen."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.base.errors import InputError
from headwater.cli import main
from headwater.derived.lookup import Lookup
from headwater.incremental.views import View
from headwater.lake.select import select
from headwater.lake.snapshot import at_version
from headwater.proof.effects import Effects, table_effects
from headwater.proof.key import Key
from headwater.proof.undone import Undone

VIEWS = {
    "by_shop": "SELECT shop, sum(amount) AS total, count(*) AS n FROM orders GROUP BY shop",
    "mine": "SELECT id, amount, shop FROM orders WHERE amount > 2",
    "ranked": "SELECT shop, total, rank() OVER (ORDER BY total DESC) AS place FROM by_shop",
    "mixed": "SELECT o.id, b.total FROM orders o JOIN by_shop b ON o.shop = b.shop",
    "average": "SELECT avg(amount) AS mean, max(note) AS last FROM orders",
}


def made(folder: Path, rng: random.Random) -> hw.Lake:
    lake = hw.connect(folder)
    rows = [
        {"id": n, "shop": n % 3, "amount": float(rng.randint(0, 9)), "note": rng.choice([None, "ü", "x"])}
        for n in range(12)
    ]
    lake.write("orders", rows)
    for name, sql in VIEWS.items():
        lake.view(name, sql)
    lake.refresh()
    return lake


def frozen(table: Any) -> Counter[str]:
    return Counter(
        repr(sorted((k, round(v, 6) if isinstance(v, float) else v) for k, v in row.items())) for row in table
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_effects_are_what_the_row_changed(seed: int, tmp_path: Path) -> None:
    """The effect of each publish, taken back from what it published, is what a query over a history without the row gives."""
    rng = random.Random(seed)
    lake = made(tmp_path, rng)
    orders = lake.table("orders")
    for _ in range(3):
        for _ in range(rng.randint(1, 3)):
            one = rng.choice([5, 5, 1, 7])
            how = rng.randrange(3)
            if how == 0:
                orders.update({"amount": f"amount + {rng.randint(1, 5)}"}, where=f"id = {one}")
            elif how == 1:
                orders.update({"shop": f"{rng.randint(0, 3)}"}, where=f"id = {one}")
            else:
                orders.append([{"id": 5, "shop": 1, "amount": 4.0, "note": "again"}])
        lake.refresh()
    key = Key.of("id=5", orders.snapshot)
    environment = lake.environment()
    effects = Effects(recompute_rows=1_000)
    effects.begin("orders", orders.snapshot, key, table_effects(orders.snapshot, -1, key))
    lookup = Lookup(environment)
    methods = set()
    for name in ("by_shop", "mine", "ranked", "mixed", "average"):
        view = lookup.artefact(name)
        assert isinstance(view, View)
        before: Any = {}
        found = {e.version: e for e in effects.follow(view, view.table.snapshot)}
        for publish in view.publishes():
            instead = {}
            for source in view.reads:
                low, high = before.get(source, -1), publish.frontier.get(source, -1)
                change = [e.change for e in effects.found[source] if low < e.version <= high]
                if change:
                    base = at_version(environment.table(source).storage, high)
                    total = sum(change[1:], change[0]) if len(change) > 1 else change[0]
                    instead[source] = Undone(base, total)
            want = frozen(view.recompute_over(publish.frontier, instead).read_all().to_pylist())
            have = frozen(view.table.at(version=publish.version).to_pylist())
            if publish.version in found:
                effect = found[publish.version]
                assert effect.exact
                methods.add(effect.method)
                have.update(frozen(effect.change.deleted().to_pylist()))
                have.subtract(frozen(effect.change.inserted().to_pylist()))
            assert +have == want, (name, publish)
            before = publish.frontier
    assert {"by column", "by recomputation"} <= methods


def test_a_table_without_a_change_is_the_table_before_it(tmp_path: Path) -> None:
    table = hw.connect(tmp_path).write("t", [{"id": n % 4, "f": n / 7, "s": [None, "ü"][n % 2]} for n in range(40)])
    table.update({"f": "f + 1"}, where="id = 2")
    table.delete("id = 1 AND f < 2")
    change = table.changes(after=0)
    undone = Undone(table.snapshot, change).read(["id", "f", "s"]).read_all()
    assert ChangeBatch.diff(undone, table.at(version=0).to_arrow()).is_empty
    assert Undone(table.snapshot, change).read(["s"]).read_all().schema.names == ["s"]


@pytest.fixture
def payments(tmp_path: Path) -> hw.Lake:
    lake = hw.connect(tmp_path)
    payments = lake.write(
        "payments",
        [{"id": n, "customer": n % 3, "amount": n * 10, "note": f"card payment {n} of shop {n % 2}"} for n in range(9)],
    )
    lake.view("spend", "SELECT customer, sum(amount) AS total FROM payments GROUP BY customer")
    lake.view("best", "SELECT max(total) AS most FROM spend")
    lake.online("features", "spend", key="customer")
    lake.online("last", "payments", key="customer", columns=["id", "amount"], order_by="id")
    lake.export("out", "payments", where="amount >= 20")
    lake.index("notes", "payments", text="note")
    lake.refresh()
    payments.update({"amount": "500"}, where="id = 4")
    lake.refresh()
    payments.update({"amount": "amount + 1"}, where="id IN (4, 5, 7)")
    lake.refresh()
    return lake


def test_one_correction_everywhere(payments: hw.Lake) -> None:
    found = payments.trace("payments", "id=4")
    assert found.nodes[0].name == "payments"
    assert {one.name for one in found.nodes} == {"payments", "spend", "best", "features", "last", "out", "notes"}
    assert [str(step.rows[0]) for step in found["payments"].steps[1:]] == [
        "~ id=4 customer=1 amount=40 -> 500 note='card payment 4 of shop 0'",
        "~ id=4 customer=1 amount=500 -> 501 note='card payment 4 of shop 0'",
    ]
    spend = found["spend"].steps
    assert [step.method for step in spend] == ["by recomputation", "by difference", "by recomputation"]
    # 1 + 4 + 7: the third commit raised two of the customer's payments, and one of them is traced.
    assert [str(row) for step in spend[1:] for row in step.rows] == [
        "~ customer=1 total=120 -> 580",
        "~ customer=1 total=581 -> 582",
    ]
    assert [str(row) for row in found["best"].steps[-1].rows] == ["- most=581", "+ most=582"]
    assert found["features"].steps[-1].method == "row by row"
    assert found["features"].found == ({"key": {"customer": 1}, "found": True, "answer": {"total": 582}},)
    assert [step.method for step in found["last"].steps] == ["by key"] * len(found["last"].steps)
    assert found["out"].found[0]["rows"] == 1
    (hit,) = found["notes"].found
    assert hit["found"] and hit["rank"] == 1
    assert all(step.exact for one in found.nodes for step in one.steps)
    payments.close()


def test_what_has_not_been_refreshed_says_so(payments: hw.Lake) -> None:
    payments.table("payments").delete("id = 4")
    found = payments.trace("payments", {"id": 4}, versions=1)
    assert [step.rows[0].sign for step in found["payments"].steps] == ["-"]
    assert found["spend"].unseen == {"payments": [3]} and not found["spend"].steps
    payments.refresh()
    found = payments.trace("payments", {"id": 4}, versions=1)
    assert [str(row) for row in found["spend"].steps[-1].rows] == ["~ customer=1 total=582 -> 81"]
    assert not found["out"].found
    assert found["notes"].found[0]["found"] is False
    assert found["features"].found[0]["answer"] == {"total": 81}
    payments.close()


def test_a_step_with_others_says_so(payments: hw.Lake) -> None:
    found = payments.trace("payments", "id=4", recompute_rows=1)
    last = found["spend"].steps[-1]
    assert last.method == "with others" and not last.exact and "other rows" in last.note
    payments.close()


def test_text_json_and_html(payments: hw.Lake, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = payments.location
    assert main(["trace", place, "payments", "id=4", "--html", str(tmp_path / "t.html")]) == 0
    text = capsys.readouterr().out
    assert "~ customer=1 total=581 -> 582" in text and "by recomputation" in text
    page = (tmp_path / "t.html").read_text()
    assert "total=581 -&gt; 582" in page and "<script" not in page
    assert main(["trace", place, "payments", "id=4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["key"] == {"id": 4} and document["nodes"][0]["steps"][1]["rows"][0]["new"]["amount"] == 500
    assert main(["trace", place, "payments", "nothing=4"]) == 1
    payments.close()


@pytest.mark.parametrize("key", ["", "id", "id=abc", "id=1 amount=2", {}, {"id": "x"}, {"id": [1]}, 7])
def test_what_is_no_key(key: Any, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"id": 1}])
    with pytest.raises(InputError):
        lake.trace("t", key)
    lake.export("e", "t")
    with pytest.raises(InputError):
        lake.trace("e", "id=1")


def test_keys_of_all_types(tmp_path: Path) -> None:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    rows = [
        {
            "i": 1,
            "s": "it's",
            "d": date(2024, 1, 2),
            "m": Decimal("1.50"),
            "t": datetime(2024, 1, 2, 3, tzinfo=UTC),
            "b": True,
            "n": None,
        },
        {"i": 2, "s": "", "d": None, "m": None, "t": None, "b": None, "n": 5},
    ]
    table = hw.connect(tmp_path).write("t", rows)
    base = table.snapshot
    for text in ("s='it''s'", "d=2024-01-02", "m=1.5", "t='2024-01-02 03:00:00Z'", "b=true", "n=null", "i=1, b=true"):
        key = Key.of(text, base)
        assert key.mask(table.to_arrow()).tolist() == [True, False], text
        assert select(base, ["i"], key.condition).read_all()["i"].to_pylist() == [1], text
        assert Key.of(str(key), base) == key


def test_what_an_online_table_answers_is_shown_without_python(tmp_path: Path) -> None:
    with hw.connect(tmp_path) as lake:
        lake.write("paid", [{"id": 1, "at": datetime(2026, 3, 2, 12, tzinfo=UTC)}])
        lake.online("latest", "paid", key="id", refresh=True)
        lines = str(lake.trace("paid", "id=1")).splitlines()
    assert "  now: key={id=1} found=True answer={at=2026-03-02 12:00:00+00:00}" in lines
