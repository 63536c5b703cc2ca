"""The stage: the project of the story with its lake, and what the acts share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.demo.act import Grid
from headwater.demo.cards.world import World, make

if TYPE_CHECKING:
    from headwater.lakehouse import Lake
    from headwater.pipeline.project import Project
    from headwater.pipeline.run import NodeRun
    from headwater.spark.types import SparkSession

__all__ = ["Served", "Stage", "run_grid", "set_up"]

FILES = Path(__file__).with_name("project")


@dataclass(frozen=True, slots=True)
class Served:
    """An answer of the online table that a service has logged."""

    at: datetime
    frontier: str
    body: bytes


@dataclass
class Stage:
    """What the acts work on, and what earlier ones leave for later ones."""

    folder: Path
    project: Project
    world: World
    start_spark: Callable[[], SparkSession]
    size: str
    decided: datetime | None = None
    """When the first payments had been refreshed, and nothing that came later was known."""
    build_cpu_seconds: float = 0.0
    served: list[Served] = field(default_factory=list)

    @property
    def lake(self) -> Lake:
        """The lake of the project."""
        return self.project.lake

    def now(self) -> datetime:
        """A moment after everything that was committed so far, and before everything that will be."""
        return datetime.now(UTC)


def set_up(folder: Path, start_spark: Callable[[], SparkSession], size: str = "S") -> Stage:
    """Copy the project's files into a folder, and open it."""
    from headwater.pipeline.project import Project

    shutil.copytree(FILES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return Stage(folder, Project.load(folder), make(size), start_spark, size)


def run_grid(nodes: Iterable[NodeRun]) -> Grid:
    """A refresh of the project, node by node."""
    rows = [(one.name, one.kind, one.state if one.refresh is None else one.refresh.mode, one.touched) for one in nodes]
    return Grid(("node", "kind", "how", "rows"), rows)
