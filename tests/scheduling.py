"""Which worker runs which file: one keeps to Spark, the other begins with everything else, and they meet in the middle.

A Spark session of its own costs a worker seconds to start and minutes to warm up, and compiling the kernels costs a minute more. Files dealt
out in turn make every worker pay for both. So the files are sorted: those that use the shared session, those that start JVMs of their own, and
the rest. Even workers take files from the front and odd ones from the back; whoever is early takes what is left in the middle, which needs
neither. The answers do not depend on it: each file still runs as a whole in one worker, and those in `_TOGETHER` run in one worker, since they share a JVM that no other file needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from xdist.remote import Producer  # type: ignore[import-untyped]
    from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

__all__ = ["BothEnds", "sort_files"]

# The session with delta-spark's classes.
_TOGETHER = (
    "tests/incremental/views/test_interop.py",
    "tests/lake/test_interop_jvm.py",
    "tests/lake_spark/test_interop.py",
)


def sort_files(items: list[pytest.Item]) -> None:
    """Put the files with the shared session first, the latest in the alphabet of them at the very front, and those without Spark last."""
    rank: dict[str, int] = {}
    for item in items:
        file = item.nodeid.split("::", 1)[0]
        if "spark" in getattr(item, "fixturenames", ()):
            rank[file] = 0
        elif "spark" in item.keywords:
            rank[file] = min(rank.get(file, 1), 1)
    names = sorted({item.nodeid.split("::", 1)[0] for item in items})
    # Files about views also compile kernels: by then the other worker has done that.
    place = {name: (rank.get(name, 2), -at if rank.get(name) == 0 else at) for at, name in enumerate(names)}
    items.sort(key=lambda item: place[item.nodeid.split("::", 1)[0]])


class BothEnds(LoadFileScheduling):  # type: ignore[misc]
    """The scheduler of ``--dist loadfile``, except that odd workers take files from the end of the queue."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _assign_work_unit(self, node: WorkerController) -> None:
        if int(node.gateway.id.removeprefix("gw")) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_TOGETHER):
            return _TOGETHER[0]
        return str(super()._split_scope(nodeid))
