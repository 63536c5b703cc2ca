"""sql: what does this text mean, exactly?

Users write Spark SQL in ANSI mode; engines with other habits answer it. This room reads the text, types it as
Spark would, and writes it in the engine's words so that the rows are the same as Spark's. What it cannot
promise, it refuses with the reason: an answer that differs silently is the one outcome that is ruled out.

`expressions` is the door of predicates, SET values, CHECK rules and generated columns; `query` that of whole queries,
which become plans (`plan`); `duckdb_query` writes a plan for DuckDB, `demands` says what it needs of each table,
`functions` is the catalogue of what can be called.
"""

__all__: list[str] = []
