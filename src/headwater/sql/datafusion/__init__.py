"""Plans in DataFusion's SQL: `to_datafusion`, the sibling of `headwater.sql.duckdb_query`."""

from headwater.sql.datafusion.query import to_datafusion

__all__ = ["to_datafusion"]
