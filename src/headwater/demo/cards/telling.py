"""The story of the project, act by act."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.demo.act import Act
from headwater.demo.cards.acts.build import build
from headwater.demo.cards.acts.correction import correct
from headwater.demo.cards.acts.crash import crash
from headwater.demo.cards.acts.day import land
from headwater.demo.cards.acts.erasure import forget
from headwater.demo.cards.acts.leak import leak
from headwater.demo.cards.acts.proof import prove
from headwater.demo.cards.acts.replay import ask, replay
from headwater.demo.cards.stage import set_up

if TYPE_CHECKING:
    from headwater.spark.types import SparkSession

__all__ = ["ACTS", "tell"]

ACTS = (build, land, correct, leak, crash, replay, forget, prove)

SERVING = (build, land, correct, crash)
"""After these a service asks the online table, and logs what it was answered."""


def tell(folder: Path, start_spark: Callable[[], SparkSession], size: str = "S") -> Iterator[Act]:
    """The acts, one after the other, on a project in an empty folder."""
    stage = set_up(folder, start_spark, size)
    with stage.project:
        for act in ACTS:
            start = time.perf_counter()
            scene = act(stage)
            scene.seconds = time.perf_counter() - start
            if act in SERVING:
                ask(stage)
            yield scene
