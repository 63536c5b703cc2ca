"""On every engine, a hostile text is a value as a parameter or in quotes, and a name in backticks, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.lakehouse import Lake
from headwater.query.run import EngineName
from headwater.testing import HOSTILE_TEXTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT = [t for t in HOSTILE_TEXTS if 0 < len(t) <= 1000]


@pytest.fixture(params=["duckdb", "datafusion", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest, lake: Lake) -> EngineName:
    name: EngineName = request.param
    if name == "spark":
        session: SparkSession = request.getfixturevalue("spark")
        lake._spark = session
    lake.write("orders", [{"n": i, "s": t} for i, t in enumerate(HOSTILE_TEXTS)])
    return name


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_as_parameters(lake: Lake, engine: EngineName) -> None:
    named = {f"p{i}": t for i, t in enumerate(HOSTILE_TEXTS)}
    asked = ", ".join(f":{name} AS c{i}" for i, name in enumerate(named))
    assert lake.sql(f"SELECT {asked}", engine=engine, parameters=named).to_tuples() == [tuple(HOSTILE_TEXTS)]
    numbered = ", ".join("?" for _ in HOSTILE_TEXTS)
    found = lake.sql(f"SELECT n FROM orders WHERE s IN ({numbered})", engine=engine, parameters=list(HOSTILE_TEXTS))
    assert sorted(found.to_tuples()) == [(i,) for i in range(len(HOSTILE_TEXTS))]
    last = HOSTILE_TEXTS[-1]
    text = "SELECT n, :s AS s FROM orders WHERE s = :s"
    assert lake.sql(text, engine=engine, parameters={"s": last}).to_tuples() == [(len(HOSTILE_TEXTS) - 1, last)]


def test_as_quoted_texts(lake: Lake, engine: EngineName) -> None:
    asked = ", ".join(f"{quoted(t)} AS c{i}" for i, t in enumerate(SHORT))
    assert lake.sql(f"SELECT {asked}", engine=engine).to_tuples() == [tuple(SHORT)]


def test_as_names(lake: Lake, engine: EngineName) -> None:
    names = list({t.lower(): t for t in SHORT}.values())
    asked = ", ".join(f"{i} AS `{name.replace('`', '``')}`" for i, name in enumerate(names))
    result = lake.sql(f"SELECT * FROM (SELECT {asked})", engine=engine).to_arrow()
    assert result.schema.names == names
    assert [c[0].as_py() for c in result.columns] == list(range(len(names)))


def test_as_names_of_tables(lake: Lake, engine: EngineName) -> None:
    for name in SHORT:
        with pytest.raises(hw.HeadwaterError):
            lake.sql(f"SELECT * FROM `{name.replace('`', '``')}`", engine=engine).to_arrow()
    assert lake.tables() == ["orders"]
    assert lake.sql("SELECT count(*) FROM orders", engine=engine).scalar() == len(HOSTILE_TEXTS)
