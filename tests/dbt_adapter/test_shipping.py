"""The adapter lies where dbt looks for it, beside dbt's own packages, and the guide shows the example."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from setuptools import find_namespace_packages  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]


def test_the_packages_are_found_and_shadow_none_of_dbts() -> None:
    found = {name for name in find_namespace_packages(str(ROOT / "src")) if name.partition(".")[0] == "dbt"}
    assert {"dbt.adapters.headwater", "dbt.include.headwater"} <= found
    for package in ("dbt", "dbt/adapters", "dbt/include"):
        assert not (ROOT / "src" / package / "__init__.py").exists(), "that one is dbt's"


def test_the_macros_are_shipped() -> None:
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    folder = ROOT / "src" / "dbt" / "include" / "headwater"
    named = {path for pattern in shipped["dbt.include.headwater"] for path in folder.glob(pattern)}
    assert named == {path for path in folder.rglob("*") if path.suffix in {".sql", ".yml"}}


@pytest.mark.parametrize("name", ["profiles.yml", "models/paid.sql", "models/spend.sql"])
def test_the_guide_shows_the_example(name: str) -> None:
    guide = (ROOT / "docs" / "guides" / "cluster.md").read_text()
    assert f" {name}\n{(ROOT / 'docs' / 'examples' / 'dbt' / name).read_text()}```\n" in guide
