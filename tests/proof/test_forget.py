"""Forget: afterwards no byte is left, whoever looks; everything derived is right; and a process that ends anywhere is no harm."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.base import faults
from headwater.base.errors import InputError, UnsupportedError
from headwater.cli import main
from headwater.proof.certificate import digest_of
from headwater.proof.key import Key
from headwater.testing.s3_server import S3Server

CUSTOMER = 731_905_286
NAMES = ("Zacharias-the-Elder", "zephyrbird", "former.address@example.com")
EVIDENCE = [*(name.encode() for name in NAMES), str(CUSTOMER).encode(), CUSTOMER.to_bytes(8, "little")]


def build(lake: hw.Lake, rows: int = 40, *, partitioned: bool = False, feed: bool = True) -> None:
    listed = [
        {
            "id": n,
            "customer": CUSTOMER if n % 10 == 3 else n % 4,
            "amount": float(n),
            "mail": f"{NAMES[0]}@example.org" if n % 10 == 3 else f"u{n % 4}@example.org",
            "note": f"paid by {NAMES[1] if n % 10 == 3 else 'card'} in shop number {n % 3}",
        }
        for n in range(rows)
    ]
    orders = lake.write(
        "orders",
        listed,
        partition_by=["customer"] if partitioned else [],
        properties={"delta.enableChangeDataFeed": "true"} if feed else {},
    )
    lake.view("spend", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    lake.view("mails", "SELECT mail, count(*) AS n FROM orders GROUP BY mail")
    lake.view("ranked", "SELECT mail, n, rank() OVER (ORDER BY n DESC, mail) AS place FROM mails")
    lake.online("features", "spend", key="customer")
    lake.online("by_mail", "mails", key="mail")
    lake.export("files", "orders")
    lake.index("notes", "orders", text="note", keyword="mail", hot="mail")
    lake.features("paid", paid)
    lake.refresh()
    orders.update({"mail": f"'{NAMES[2]}'"}, where="id = 13")
    lake.refresh()
    orders.update({"amount": "amount + 100"}, where=f"customer = {CUSTOMER}")
    lake.refresh()
    orders.delete("id = 3")
    lake.refresh()
    lake.close()


def paid(lake: Any) -> Any:
    return lake.stream("orders", time="id", by="customer").rolling(3, n="count(*)", total="sum(amount)")


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder, as it lies there, and what is in it where it is compressed."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data, name = path.read_bytes(), str(path.relative_to(folder))
        yield name, name.encode() + data
        if path.suffix == ".parquet":
            yield name, repr(pq.read_table(io.BytesIO(data), partitioning=None).to_pylist()).encode()
        if path.suffix == ".split":
            with zipfile.ZipFile(path) as archive:
                for inner in archive.namelist():
                    yield f"{name}/{inner}", archive.read(inner)
                with pa.ipc.open_file(archive.read("hot.arrow")) as hot:
                    yield f"{name}/hot", repr(hot.read_all().to_pylist()).encode()


def left(folder: Path) -> set[str]:
    return {name for name, data in contents(folder) if any(one in data for one in EVIDENCE)}


@pytest.mark.long
@pytest.mark.parametrize("partitioned", [False, True])
def test_nothing_is_left(partitioned: bool, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    build(lake, partitioned=partitioned)
    before = left(tmp_path)
    # It is everywhere before, or the search would prove nothing.
    for place in ("orders/", "mails/", "_delta_log", "records", ".split", "exports", "_change_data", "views/"):
        assert any(place in name for name in before), place
    plan = lake.plan_forget("orders", f"customer={CUSTOMER}")
    assert plan.rows == {"orders": 3} and plan.files["orders"] > 1 and not plan.refused
    assert left(tmp_path) == before
    found = lake.forget("orders", f"customer={CUSTOMER}")
    assert found.complete, str(found)
    assert left(tmp_path) == set()
    assert found.roots[0].rows == 3 and found.roots[0].lost >= 3
    assert {one.name for one in found.artefacts} == set(lake.artefacts())
    # What is left is right, and goes on at the price of the change.
    assert lake.verify().ok
    assert lake.table("orders").count() == 36
    assert not lake.online("features").fetch([CUSTOMER]).found.any()
    lake.table("orders").append(lake.table("orders").to_arrow().slice(0, 1))
    assert {one.mode for one in lake.refresh()} == {"incremental"} and lake.verify().ok
    # The certificate names nobody, and who knows the key can tell.
    (file,) = (tmp_path / "_headwater/forgotten").glob("*.json")
    stored = json.loads(file.read_text())
    assert stored["digest"] == digest_of(stored) and stored["search"]["hits"] == []
    key = Key.of({"customer": CUSTOMER}, lake.table("orders").snapshot)
    assert found.is_about(key) and not found.is_about(Key.of("customer=1", lake.table("orders").snapshot))
    again = lake.forget("orders", f"customer={CUSTOMER}")
    assert again.complete and again.roots[0].rows == 0
    lake.close()


@pytest.mark.long
def test_a_process_that_ends_anywhere_is_no_harm(tmp_path: Path) -> None:
    """It ends at every tenth point at which something is about to be written or deleted; a second run finishes."""
    points: list[str] = []
    lake = hw.connect(tmp_path / "whole")
    build(lake, 20)
    with faults.installed(lambda name, _: points.append(name)):
        assert lake.forget("orders", f"customer={CUSTOMER}").complete
    lake.close()
    steps = ("before_rewrite", "before_checkpoint", "before_delete", "before_log_delete")
    assert {"forget.purge", *(f"lake.erasure.{step}" for step in steps)} <= set(points)
    for at in range(7, len(points), max(1, len(points) // 4)):
        folder = tmp_path / str(at)
        lake = hw.connect(folder)
        build(lake, 20)
        reached = 0

        def end(name: str, detail: str, at: int = at) -> None:
            nonlocal reached
            reached += 1
            if reached > at:
                raise KeyboardInterrupt

        with faults.installed(end), pytest.raises(KeyboardInterrupt):
            lake.forget("orders", f"customer={CUSTOMER}")
        found = hw.connect(folder).forget("orders", f"customer={CUSTOMER}")
        assert found.complete, (at, points[at], str(found))
        assert left(folder) == set(), (at, points[at])
        assert hw.connect(folder).verify().ok
        hw.connect(folder).close()


@pytest.mark.long
@pytest.mark.parametrize(("point", "nth"), [("forget.purge", 4), ("lake.erasure.before_log_delete", 9)])
def test_kill(point: str, nth: int, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    build(lake, 20)
    life = f"""
import headwater as hw
from headwater.testing.faults import FaultPlan
with FaultPlan().kill_at({point!r}, nth={nth}):
    hw.connect({str(tmp_path)!r}).forget("orders", "customer={CUSTOMER}")
"""
    ended = subprocess.run(
        [sys.executable, "-c", life], check=False, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}
    )
    assert ended.returncode == -signal.SIGKILL and left(tmp_path)
    found = hw.connect(tmp_path).forget("orders", f"customer={CUSTOMER}")
    assert found.complete, str(found)
    assert left(tmp_path) == set() and hw.connect(tmp_path).verify().ok
    hw.connect(tmp_path).close()


def test_time_travel_to_what_never_had_it_stays(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    people = lake.write("people", [{"id": 1, "mail": "ada.lovelace@example.org"}, {"id": 2, "mail": "bob@example.org"}])
    people.delete("id = 1")
    people.optimize()
    people.append([{"id": 3, "mail": "eve@example.org"}])
    people.append([{"id": 4, "mail": "dan@example.org"}])
    found = lake.forget("people", "id=1")
    assert found.complete and found.roots[0].rows == 0
    kept = people.at(version=found.roots[0].lost + 1)
    assert found.roots[0].lost < 4 and {row["id"] for row in kept.to_pylist()} <= {2, 3, 4}
    assert people.count() == 3 and not left_of(tmp_path, b"ada.lovelace")


def left_of(folder: Path, *evidence: bytes) -> set[str]:
    return {name for name, data in contents(folder) if any(one in data for one in evidence)}


def test_what_another_table_holds_is_a_hit_until_it_is_named(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("people", [{"id": 1, "mail": "ada.lovelace@example.org"}, {"id": 2, "mail": "bob@example.org"}])
    lake.write("letters", [{"to": "ada.lovelace@example.org", "n": 1}, {"to": "bob@example.org", "n": 2}])
    found = lake.forget("people", "id=1")
    assert not found.complete and all(path.startswith("letters/") for path, _ in found.hits)
    assert (
        not list((tmp_path / "_headwater/forgotten").glob("*"))
        if (tmp_path / "_headwater/forgotten").exists()
        else True
    )
    found = lake.forget("people", "id=1", also={"letters": "to='ada.lovelace@example.org'"})
    assert found.complete and lake.table("letters").count() == 1 and not left_of(tmp_path, b"ada.lovelace")


def test_what_cannot_be_erased_is_refused(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake")
    hw.connect(tmp_path / "other").write("far", [{"id": 1}])
    lake.attach("far", str(tmp_path / "other" / "far"))
    lake.write("only", [{"id": 1}], properties={"delta.appendOnly": "true"})
    lake.write("near", [{"id": 1}])
    lake.view("v", "SELECT id FROM near", refresh=True)
    for name, why in (("far", "attached"), ("only", "appendOnly")):
        with pytest.raises(UnsupportedError, match=why) as error:
            lake.forget(name, "id=1")
        assert error.value.code == "E3010" and lake.table(name).count() == 1
        assert lake.plan_forget(name, "id=1").refused
    with pytest.raises(InputError):
        lake.forget("v", "id=1")
    lake.close()


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = hw.connect(tmp_path)
    lake.write("people", [{"id": 1, "mail": "ada.lovelace@example.org"}, {"id": 2, "mail": "bob@example.org"}])
    assert main(["forget", str(tmp_path), "people", "id=1", "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"people": 1}
    assert main(["forget", str(tmp_path), "people", "id=1"]) == 1  # nobody can be asked
    assert "error[E8004]" in capsys.readouterr().err
    assert lake.table("people").count() == 2
    assert main(["forget", str(tmp_path), "people", "id=1", "--yes"]) == 0
    assert "nothing found" in capsys.readouterr().out
    assert main(["forget", str(tmp_path), "people", "id=1", "--yes", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["complete"] and document["roots"][0]["rows"] == 0


@pytest.mark.long
def test_on_s3(s3: S3Server) -> None:
    lake = hw.connect(s3.url(f"forget-{os.getpid()}"), s3.options)
    build(lake, 20)
    found = lake.forget("orders", f"customer={CUSTOMER}")
    assert found.complete, str(found)
    root = lake.environment().root
    for entry in root.list(""):
        assert not any(one in root.get(entry.path) for one in EVIDENCE), entry.path
    assert lake.verify().ok
    lake.close()
