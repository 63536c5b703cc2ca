"""Spark SQL over the rows of a task: read once by the driver, computed where the rows are.

Whatever a stream says in SQL (a condition, a column, an aggregate, a frame of rows) means what Spark means by it. The
text is read and typed on the driver (`headwater.sql`), which is also where a mistake in it is told; what goes to the
tasks is the form that DuckDB computes, with the types that have to come out. DuckDB runs in the task's own process, on
one thread, and takes and gives Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.base.spark_text import quoted_name as quoted
from headwater.sql import udfs
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.expressions import failure
from headwater.sql.query import parse_query

if TYPE_CHECKING:
    import duckdb

__all__ = ["RowsQuery", "quoted", "select_list"]


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """A query over tables that are at hand. Build it with `read`.

    Attributes
    ----------
    text : str
        the query as it was written
    sql : str
        the query as DuckDB computes it
    schema : pa.Schema
        names and types of its rows
    relations : tuple of str
        the tables it reads
    """

    text: str
    sql: str
    schema: pa.Schema
    relations: tuple[str, ...]

    @classmethod
    def read(cls, text: str, schemas: Mapping[str, pa.Schema], shown: str | None = None) -> RowsQuery:
        """Read a query over tables of these names and types; ``shown`` stands for it in messages of tasks.

        >>> query = RowsQuery.read("SELECT sum(v) AS total FROM rows", {"rows": pa.schema([("v", pa.int32())])})
        >>> query.run({"rows": pa.table({"v": pa.array([1, 2], pa.int32())})}).to_pylist()
        [{'total': 3}]
        """

        def schema_of(name: str, *_: Any) -> pa.Schema:
            for known, schema in schemas.items():
                if known.lower() == name.lower():
                    return schema
            raise NotFoundError.table(name, sorted(schemas), "the stream")

        plan = parse_query(text, schema_of)
        nullable = pa.schema([f.with_nullable(True) for f in plan.schema])
        return cls(shown or text, to_duckdb(plan), nullable, tuple(schemas))

    def run(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Compute it over these tables, by name."""
        import duckdb

        owner = _database()
        udfs.install(owner, self.sql)
        cursor = owner.cursor()
        try:
            for name in self.relations:
                cursor.register(name, tables[name])
            found = cursor.sql(self.sql).to_arrow_table()
        except duckdb.Error as error:
            raise failure(self.text, error) from None
        finally:
            cursor.close()
        columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(found.columns, self.schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.schema)


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    import duckdb

    config: dict[str, Any] = {
        "threads": 1,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def select_list(names: Iterable[str], more: Mapping[str, str] | None = None) -> str:
    """Columns by name, and expressions under the names they get.

    >>> select_list(["a"], {"b c": "a + 1"})
    '`a`, (a + 1) AS `b c`'
    """
    parts = [quoted(name) for name in names]
    parts += [f"({text}) AS {quoted(name)}" for name, text in (more or {}).items()]
    return ", ".join(parts)
