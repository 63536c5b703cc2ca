"""spark: the session, and what this machine offers one. pyspark is imported only when it is used.

``hw.spark()`` is the public function, and ``headwater.spark`` is this room. Python lets one name be only
one thing, and importing the room binds its name in the package, so the room itself is callable.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _CallableRoom(ModuleType):
    def __call__(
        self, master: str | None = None, *, app_name: str = "headwater", config: Mapping[str, str] | None = None
    ) -> SparkSession:
        from headwater.spark.session import spark

        return spark(master, app_name=app_name, config=config)


sys.modules[__name__].__class__ = _CallableRoom
