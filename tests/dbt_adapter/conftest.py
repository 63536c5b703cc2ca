"""The example of the guide as a dbt project in a folder of its own, run by dbt itself in this process."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "dbt"


class Project:
    """A dbt project over a lake."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns("target", "logs"))
        self.lake = hw.connect(folder / "lake")

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(exist_ok=True)
        (self.folder / path).write_text(text)

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def dbt(self, *arguments: str, fails: bool = False) -> dict[str, dict[str, Any]]:
        """Run a command; what it says of each node, by the node's name."""
        from dbt.cli.main import dbtRunner

        (self.folder / "target" / "run_results.json").unlink(missing_ok=True)
        places = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = dbtRunner().invoke([*arguments, *places, "--quiet"])
        results = self.folder / "target" / "run_results.json"
        found = json.loads(results.read_text())["results"] if results.exists() else []
        said = [(one["unique_id"], one["message"]) for one in found if one["status"] not in {"success", "pass"}]
        assert done.exception is None, done.exception
        assert done.success is not fails, said
        names = [one["unique_id"].split(".") for one in found]
        return {name[3 if name[0] == "unit_test" else 2]: one for name, one in zip(names, found, strict=True)}

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.lake.sql(query).to_pylist()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    pytest.importorskip("dbt.cli.main")
    made = Project(tmp_path)
    monkeypatch.setenv("SHOP_LAKE", made.lake.location)
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "0")
    yield made
    from dbt.adapters.headwater.connections import HeadwaterConnectionManager

    HeadwaterConnectionManager._lakes.clear()
