"""Verify: everything derived is what its sources say; what was tampered with is found, here and by Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.cli import main
from headwater.lake import modify
from headwater.proof.on_spark import verify_view
from headwater.proof.verification import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ENGINES: tuple[Engine, Engine] = ("duckdb", "spark")


def build(folder: Path, spark: SparkSession | None = None) -> hw.Lake:
    lake = hw.connect(folder, spark=spark)
    rows = [{"id": n, "k": n % 5, "f": n / 3, "s": None if n % 4 else f"s{n}"} for n in range(40)]
    lake.write("t", rows)
    lake.view("a", "SELECT id, k, f, s FROM t WHERE id > 3")
    lake.view("b", "SELECT k, sum(f) AS f, count(s) AS n, max(s) AS s FROM a GROUP BY k")
    lake.export("e", "a")
    lake.online("o", "b", key="k")
    lake.refresh()
    return lake


def tamper(lake: hw.Lake, name: str, where: str) -> None:
    """Take rows out of a view's table behind its back."""
    modify.delete(lake.table(name).snapshot, where)


def test_all_and_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = build(tmp_path)
    found = lake.verify()
    assert (found.ok and [one.name for one in found] == ["a", "b", "e", "o"]) or found.ok
    assert {one.name: one.engine for one in found} == {"a": "duckdb", "b": "duckdb", "e": "local", "o": "local"}
    assert [one.name for one in lake.verify("o", "a")] == ["a", "o"]
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("equal") == 4
    lake.view("c", "SELECT count(*) AS n FROM t")
    assert lake.verify("c").ok and lake.verify("c")["c"].state == "never built"
    with pytest.raises(HeadwaterError) as error:
        lake.verify("nothing")
    assert error.value.code == "E1601"
    assert "verified" in found._repr_html_()
    lake.close()


def test_what_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = build(tmp_path)
    tamper(lake, "b", "k = 2")
    found = lake.verify()
    assert not found.ok and [one.name for one in found if one.state == "differs"] == ["b"]
    lake.close()
    assert main(["verify", str(tmp_path), "--all", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    wrong = {one["name"]: one for one in document["artefacts"]}["b"]
    assert (wrong["state"], wrong["missing_rows"], wrong["missing"][0]["row"]["k"]) == ("differs", 1, "2")
    assert main(["verify", str(tmp_path), "b"]) == 1
    assert "+ k=2" in capsys.readouterr().out


def test_what_cannot_be_verified_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = build(tmp_path)
    lake.close()
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    found = hw.connect(tmp_path).verify("a", "o")
    assert found["a"].state == "failed" and found["a"].error is not None and found["o"].state == "equal"
    assert main(["verify", str(tmp_path), "a"]) == 1
    assert "could not be verified" in capsys.readouterr().err


@pytest.mark.long
def test_spark_finds_what_duckdb_finds(spark: SparkSession, tmp_path: Path) -> None:
    lake = build(tmp_path, spark)
    found = lake.verify(engine="spark")
    assert found.ok, str(found)
    assert {one.name: one.engine for one in found} == {"a": "spark", "b": "spark", "e": "local", "o": "local"}
    tamper(lake, "a", "k = 3 OR id = 11")
    tamper(lake, "b", "k = 2")
    for name in ("a", "b"):
        ours, theirs = (lake.verify(name, engine=engine)[name].found for engine in ENGINES)
        assert ours is not None and theirs is not None and not theirs.equal
        assert (ours.missing, ours.missing_rows, ours.rows) == (theirs.missing, theirs.missing_rows, theirs.rows)
    # The driver takes no more than it may, and says so.
    view: Any = lake.derived("a")
    some, note = verify_view(lake, view, fetched_rows=1)
    assert not some.equal and note
    lake.close()


@pytest.mark.long
def test_views_that_spark_cannot_answer_alike(spark: SparkSession, tmp_path: Path) -> None:
    lake = build(tmp_path, spark)
    lake.function("twice", lambda x: None if x is None else 2 * x, arguments=["bigint"], returns="bigint")
    lake.view("f", "SELECT twice(id) AS n FROM t", refresh=True)
    lake.view("lagged", "SELECT id, lag(f) OVER (ORDER BY k) AS before FROM t", refresh=True)
    lake.view("clock", "SELECT id, current_date() AS d FROM t", policy="full", refresh=True)
    found = lake.verify("f", "lagged", "clock", engine="spark")
    assert found.ok
    assert {one.engine for one in found} == {"duckdb"} and all(one.note for one in found)
    lake.close()


def test_auto_keeps_small_things_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = build(tmp_path)
    assert lake.verify("a", engine="auto")["a"].engine == "duckdb"
    assert pa.types.is_int64(lake.table("a").schema.field("id").type)
    with pytest.raises(HeadwaterError):
        lake.verify("a", engine="polars")  # type: ignore[arg-type]
    lake.close()
