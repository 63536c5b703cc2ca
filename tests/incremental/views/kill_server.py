"""The lives of views that are killed (`tests.incremental.killing`).

Commands come as JSON lines on stdin: ``{"folder": …, "views": […]}`` with ``"after_ms"``, the moment of the kill, or ``"point"`` and
``"nth"``. The child opens the lake and refreshes the views, one after the other, with
``"engine": "spark"`` by the tasks of Spark's runtime, which run in the child, with so many ``"shards"``. With ``"follow"`` each is followed to the
newest versions, so many rows at a time. The answer is its wait status.
"""

from __future__ import annotations

import tempfile
from collections import deque
from contextlib import nullcontext
from typing import Any

from tests.incremental.killing import serve

import headwater as hw
from headwater.base import settings
from headwater.derived import upkeep
from headwater.incremental.views import packing_up
from headwater.incremental.views.spark.places import here


def live(command: dict[str, Any]) -> None:
    """One life: refresh each view, until the end or the kill."""
    lake = hw.connect(command["folder"])
    engine = command.get("engine", "local")
    with (
        here() if engine == "spark" else nullcontext(),
        settings.override(view_engine=engine, view_spark_shards=command.get("shards", 3)),
    ):
        for name in command["views"]:
            if "follow" in command:
                deque(lake.view(name).follow(available_now=True, most_rows=command["follow"]), maxlen=0)
            else:
                lake.view(name).refresh(full=command.get("full", False))
    upkeep.wait()


def _load_kernels() -> None:
    """Refresh views of the same shapes once, so that no child has to compile anything."""
    from tests.incremental.views.test_kill import VIEWS
    from tests.incremental.views.world import World

    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, 1)
        for name, sql in VIEWS.items():
            view = world.lake.view(name, sql)
            view.refresh()
            world.orders.append(world.orders.to_arrow())
            view.refresh()
            view.optimize()
        upkeep.wait()


if __name__ == "__main__":
    packing_up._FEW = 4  # so that files are put together every few lives
    serve(live, _load_kernels)
