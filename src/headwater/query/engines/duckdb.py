"""DuckDB: the engine inside the process, and the default.

One database in memory serves the whole process (`duckdb_database`); each query has a cursor of its own, so queries of
many threads run at once and share the workers. Rows stream out in batches while the query runs, with the GIL released.
DuckDB is given SQL of our own making only; native SQL has a database of its own (`duckdb_native`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa

from headwater.query.engines.duckdb_database import BATCH_ROWS, database, failure
from headwater.query.engines.duckdb_native import named_tables, native
from headwater.query.engines.duckdb_scan import Relations
from headwater.query.engines.engine import Running, conformed
from headwater.query.engines.planned import PlannedEngine
from headwater.query.sources import Source
from headwater.sql import udfs
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.plan import Plan, Scan

__all__ = ["DuckDBEngine"]


class DuckDBEngine(PlannedEngine):
    """Plans and native SQL, computed by DuckDB."""

    name = "duckdb"
    narrows = True

    def compute(self, plan: Plan, sources: Mapping[Scan, Source], text: str) -> Running:
        relations = Relations()
        sql = to_duckdb(plan, lambda scan: relations.sql(sources[scan]))
        owner = database()
        udfs.install(owner, sql)
        cursor = owner.cursor()

        def failed(error: Exception) -> Exception:
            return failure(text, error, sources)

        try:
            for name, source in relations.streams.items():
                cursor.register(name, source)
            bound = cursor.sql(sql, params=_named_in(sql, relations.values) or None)
        except Exception as error:  # noqa: BLE001 (told in plain words)
            cursor.close()
            raise failed(error) from None

        def batches() -> Iterator[pa.RecordBatch]:
            # Begun when the first batch is asked for: until then, and while it is computed, it can be cancelled.
            yield from bound.to_arrow_reader(BATCH_ROWS)

        return Running(conformed(batches(), plan.schema, failed), cursor.interrupt, cursor.close)

    def named_tables(self, sql: str) -> set[str]:
        """The tables that a text of DuckDB's own SQL names."""
        return named_tables(sql)

    def native(self, sql: str, tables: Mapping[str, Source]) -> Running:
        """Run a text of DuckDB's own SQL."""
        return native(sql, tables)

    def own_plan(self, plan: Plan, sources: Mapping[Scan, Source], *, analyze: bool = False) -> str:
        relations = Relations()
        sql = to_duckdb(plan, lambda scan: relations.sql(sources[scan]))
        owner = database()
        udfs.install(owner, sql)
        cursor = owner.cursor()
        try:
            for name, source in relations.streams.items():
                cursor.register(name, source)
            word = "EXPLAIN ANALYZE" if analyze else "EXPLAIN"
            # The bits of deletion vectors would be printed in full; where nothing runs, one byte stands for them.
            values = relations.values if analyze else dict.fromkeys(relations.values, b"\0")
            rows = cursor.execute(f"{word} {sql}", _named_in(sql, values) or None).fetchall()
        except Exception as error:  # noqa: BLE001 (told in plain words)
            raise failure("EXPLAIN", error, sources) from None
        finally:
            cursor.close()
        return "\n".join(str(row[-1]).rstrip() for row in rows)


def _named_in(sql: str, values: Mapping[str, bytes]) -> dict[str, bytes]:
    """The values that a text names: a scan that was written may have been left out again,
    and DuckDB takes none too many.
    """
    named = set(re.findall(r"\$(\w+)", sql))
    return {name: value for name, value in values.items() if name in named}
