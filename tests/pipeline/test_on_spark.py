"""A profile with Spark: what is worth it is built by its tasks, and the rows are the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.test_project import CHAIN, project

import headwater as hw
from headwater.base import settings
from headwater.base.errors import ProjectError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_profile_with_spark(tmp_path: Path, spark: SparkSession) -> None:
    yaml = "name: shop\nprofiles:\n  cluster: {spark: {master: 'local[2]'}}\n"
    local = project(tmp_path, {**CHAIN, "headwater.yaml": yaml})
    assert local.engine() == "local"
    made = hw.Project.load(tmp_path, profile="cluster")
    assert made.engine() == "auto"
    with settings.override(view_spark_rows=1):
        run = made.refresh()
        made.lake.table("t").append([{"id": 3, "k": "a", "x": 1.0}])
        assert made.refresh().changed == ["a", "b", "c", "d"]
    assert run.ok and made.verify().ok
    assert made.lake.sql("SELECT k, s FROM b ORDER BY k").to_pylist() == [{"k": "a", "s": 2.5}, {"k": "b", "s": 2.5}]
    local.lake.table("t").append([{"id": 4, "k": "b", "x": 1.0}])
    again = hw.Project.load(tmp_path).refresh()  # the same state, without Spark
    assert {one.refresh.mode for one in again.values() if one.refresh} == {"incremental"}
    with pytest.raises(ProjectError, match="no engine `flink`"):
        made.plan(engine="flink")
