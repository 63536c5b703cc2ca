"""export: what do readers that know only Parquet see? A table's rows as plain Parquet files, kept up to date."""

from headwater.export.export import Export

__all__ = ["Export"]
