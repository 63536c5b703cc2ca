"""Who else answers SQL over the same files, each inside this process.

A peer is opened once with the tables of a lake, and then takes SQL text and gives an Arrow table. It may hold on to what it
knows of the tables; Headwater, which is asked through ``lake.sql``, looks for new commits at every query. No peer
needs TPC-H rewritten; `REWRITES` is where such a thing would stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from headwater.base import settings
from headwater.lake import partitions
from headwater.lakehouse import Lake

__all__ = ["BARE", "ENGINES", "PEERS", "REWRITES", "Query", "attempt", "bare_duckdb", "files", "headwater", "here"]

Query = Callable[[str], pa.Table]
BARE = "duckdb on files"
ENGINES = ("duckdb", "datafusion", "spark")
REWRITES: Mapping[str, Mapping[str, str]] = {}


def headwater(lake: Lake, engine: str) -> Query:
    kind: Any = engine
    return lambda text: lake.sql(text, engine=kind).to_arrow()


def files(lake: Lake, name: str) -> list[str]:
    """Where the files of a table lie."""
    now = lake.table(name).snapshot
    return [str(now.storage.local_path(partitions.decode_path(path))) for path in now.files]


def bare_duckdb(lake: Lake, tables: Sequence[str]) -> Query:
    """DuckDB with a view over the list of each table's files: no log, no Spark SQL, the same threads."""
    import duckdb

    connection = duckdb.connect(config={"threads": settings.current().worker_threads})
    for name in tables:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files(lake, name)!r})")
    return lambda text: connection.sql(text).to_arrow_table()


def query_builder(lake: Lake, tables: Sequence[str]) -> Query:
    """delta-rs's own SQL, on DataFusion."""
    import deltalake

    builder = deltalake.QueryBuilder()
    for name in tables:
        builder.register(name, deltalake.DeltaTable(_path(lake, name)))
    return lambda text: pa.table(builder.execute(text).read_all())


def polars(lake: Lake, tables: Sequence[str]) -> Query:
    import polars as pl

    context = pl.SQLContext({name: pl.scan_delta(_path(lake, name)) for name in tables})
    return lambda text: context.execute(text).collect().to_arrow()


def delta_fusion(lake: Lake, tables: Sequence[str]) -> Query:
    import delta_fusion as fusion

    engine = fusion.DeltaEngine()
    for name in tables:
        engine.register_table(name, _path(lake, name))
    return lambda text: pa.Table.from_batches(engine.query(text))


def _path(lake: Lake, name: str) -> str:
    return str(lake.table(name).snapshot.storage.local_path(""))


PEERS: Mapping[str, tuple[str, Callable[[Lake, Sequence[str]], Query]]] = {
    BARE: ("duckdb", bare_duckdb),
    "querybuilder": ("deltalake", query_builder),
    "polars": ("polars", polars),
    "delta-fusion": ("delta_fusion", delta_fusion),
}


def attempt(query: Query, text: str) -> pa.Table | str:
    """A peer's answer, or why there is none."""
    try:
        return query(text)
    except BaseException as error:  # a peer in Rust may panic, which is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def here() -> list[str]:
    """The peers that are installed."""
    return [name for name, (module, _) in PEERS.items() if find_spec(module)]
