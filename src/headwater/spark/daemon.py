"""The process that Spark forks its Python workers from, with what streams need loaded already.

Spark ends workers that are idle for a minute, and each new one would import Arrow, pandas and the rooms of this package
again, a second or two of work every time. Spark starts this module in place of its own (``spark.python.daemon.module``)
in sessions on this machine; what is imported here is shared by all workers. The machine code of the kernels that every
task of a view runs is loaded here too, where it is kept on this machine; nothing is compiled. Nothing else is done
before workers are forked: no threads are started, no files stay open.

On a cluster the setting is the user's to make: it holds for the application before anybody can ask whether executors
have the package, one that is shipped comes later than the daemon, and a daemon that cannot be imported fails all tasks.

Columns are arrays of megabytes, which C's allocator takes from the system and gives back each time, and the system
fills each with zeros first. Workers keep what they had (`keep_memory`), up to a limit: that is a third of their CPU in
an as-of join.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from importlib import import_module

__all__ = ["KERNELS", "LOADED", "keep_memory", "load"]

LOADED = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "headwater.timeseries.stream",
    "headwater.timeseries.sources.delta_reading",
    "headwater.timeseries.sources.files",
    "headwater.incremental.planning",
    "headwater.incremental.views.spark.tasks",
    "headwater.incremental.views.spark.whole",
)
KERNELS = ("aggregate", "arrange", "arrow", "consolidate", "filter", "hash", "merge", "probe", "slots")
"""The modules of kernels that reading, sending, joining, adding up and saving rows take."""
# Of glibc's <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def load() -> None:
    """Import what workers will need; what is not installed they will miss, not this process."""
    for name in LOADED:
        try:
            import_module(name)
        except ImportError:
            continue
    with suppress(ImportError):  # numba, where it is not installed
        _load_kernels()


def _load_kernels() -> None:
    from headwater.kernels.aside import is_loaded
    from headwater.kernels.compiled import kernels

    for name, kernel in kernels.items():
        if name.partition(".")[0] in KERNELS:
            is_loaded(kernel)


def keep_memory() -> None:
    """Tell glibc to keep what is freed, where it is glibc; what it is told holds after a fork."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_TRIM_THRESHOLD, 128 << 20)


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    keep_memory()
    gc.freeze()  # or a collection would touch, and so copy, the pages that workers share
    manager()
