"""A project whose lake lies on a real S3 server: secrets from the environment, a lease for a lock, the same refreshes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.pipeline.test_project import CHAIN

import headwater as hw
from headwater.base.errors import ConflictError
from headwater.pipeline.project_lock import project_lock
from headwater.testing.s3_server import S3Server

YAML = "name: shop\nlake: ${SHOP_LAKE}\nstorage_options:\n"


@pytest.mark.long
def test_a_project_on_s3(tmp_path: Path, s3: S3Server) -> None:
    url = s3.url("project")
    environ = {"SHOP_LAKE": url, **{f"SHOP_{name}": value for name, value in s3.options.items()}}
    lines = "".join(f"  {name}: ${{SHOP_{name}}}\n" for name in s3.options)
    for name, text in {**CHAIN, "headwater.yaml": YAML + lines}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    lake = hw.connect(url, s3.options)
    lake.write("t", [{"id": 1, "k": "a", "x": 1.5}, {"id": 2, "k": "b", "x": 2.5}])
    project = hw.Project.load(tmp_path, environ={**os.environ, **environ})
    assert "SecretStr" in repr(project.config.storage_options) and s3.options["AWS_SECRET_ACCESS_KEY"] not in repr(
        project.config
    )
    assert project.refresh().changed == ["a", "b", "c", "d"]
    lake.table("t").append([{"id": 3, "k": "a", "x": 1.0}])
    assert [one.mode for one in project.plan().values()] == ["incremental"] * 4
    busy = pytest.raises(ConflictError, match="is being refreshed already, by pid")
    with project_lock(lake.catalog.root, "shop"), busy:
        project.refresh()
    with ThreadPoolExecutor(3) as threads:
        runs = list(
            threads.map(lambda _: hw.Project.load(tmp_path, environ=environ).refresh(wait_seconds=60), range(3))
        )
    assert all(run.ok for run in runs) and sum(len(run.changed) for run in runs) == 4
    assert project.status().ok and project.verify().ok
    rows = project.history().to_pylist()
    assert len({(row["node"], row["version"]) for row in rows}) == len(rows) == 8
