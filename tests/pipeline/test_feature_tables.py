"""Feature tables in a project: declared in features/*.py, checked before anything is made, and refreshed in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.test_project import project

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.base.feature_registry import feature

FEATURE = """
import headwater as hw


@hw.feature(policy="{policy}")
def recent(lake):
    "What was spent lately."
    return lake.stream("cleaned", time="id", by="k").rolling({size}, spent="sum(x)")
"""
FILES = {
    "views/cleaned.sql": "SELECT id, k, x FROM t WHERE x > 0",
    "features/recent.py": FEATURE.format(policy="strict", size=10),
    "views/most.sql": "SELECT k, max(spent) AS most FROM recent GROUP BY k",
}


@pytest.mark.long
def test_a_declared_feature_is_refreshed_between_what_it_reads_and_what_reads_it(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)
    assert list(made.nodes) == ["t", "cleaned", "recent", "most"]
    assert [one.mode for one in made.plan().values()] == ["full"] * 3
    assert made.refresh().ok
    made.lake.table("t").append([{"id": 3, "k": "a", "x": 1.0}])
    assert [one.mode for one in made.plan().values()] == ["incremental"] * 3
    run = made.refresh()
    assert run.ok and run.changed == ["cleaned", "recent", "most"]
    assert made.lake.table("most").to_arrow().sort_by("k").to_pylist() == [
        {"k": "a", "most": 2.5},
        {"k": "b", "most": 2.5},
    ]
    assert made.refresh().changed == []
    assert made.verify().ok


def test_another_function_is_planned_and_computed(tmp_path: Path) -> None:
    assert project(tmp_path, FILES).refresh().ok
    made = project(tmp_path, {**FILES, "features/recent.py": FEATURE.format(policy="auto", size=1)})
    assert made.plan()["recent"].mode == "full"
    assert made.refresh().ok
    assert sorted(made.lake.table("recent").to_arrow()["spent"].to_pylist()) == [1.5, 2.5]
    assert made.refresh().changed == []


def test_its_functions_are_the_project_s_wherever_it_lies_and_nobody_else_s(tmp_path: Path) -> None:
    assert project(tmp_path, FILES).refresh().ok
    assert feature.get("recent") is None, "another lake of this process may have a feature table of that name"
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    with hw.Project.load(moved) as again:
        assert again.verify("recent").ok
        assert again.lake.features("recent").plan().mode == "noop"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (FEATURE.format(policy="strict", size=10).replace('"cleaned"', '"nothing"'), "nothing"),
        (FEATURE.format(policy="strict", size=10).replace("sum(x)", "sum(y)"), "y"),
        (FEATURE.format(policy="strict", size=10).replace("policy", "polizy"), "polizy"),
        ("import headwater as hw\n\n\n@hw.feature\ndef recent(lake):\n    return 3\n", "gave 3"),
    ],
)
def test_a_feature_that_cannot_be_is_refused_before_anything_is_made(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(HeadwaterError, match=match):
        project(tmp_path, {**FILES, "features/recent.py": text}).refresh()
    assert not (tmp_path / "lake" / "cleaned").exists()
