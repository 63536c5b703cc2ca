"""The process that Spark forks its Python workers from, with what streams need loaded already.

Spark ends workers that are idle for a minute, and each new one would import Arrow, pandas and the rooms of this package again, a second
or two of work every time. Spark starts this module in place of its own (``spark.python.daemon.module``) in sessions on this machine;
what is imported here is shared by all workers. Nothing is done with it before they are forked: no threads, no files.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["LOADED", "load"]

LOADED = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "headwater.timeseries.stream",
    "headwater.timeseries.sources.delta_reading",
    "headwater.timeseries.sources.files",
)


def load() -> None:
    """Import what workers will need; what is not installed they will miss, not this process."""
    for name in LOADED:
        try:
            import_module(name)
        except ImportError:
            continue


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
