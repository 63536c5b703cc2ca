"""Those who have no index: polars, DuckDB and plain Spark, each on the list of the table's Parquet files.

Each is asked in the way that is quickest for it: a search for letters without regard to case is no regular expression
where it offers something better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.searches.questions import Question

__all__ = ["DuckDBScan", "PolarsScan", "SparkScan"]


class PolarsScan:
    """polars' lazy frames."""

    def __init__(self, files: Sequence[str]) -> None:
        import polars

        self._polars = polars
        self._frame = polars.scan_parquet(list(files))

    def open(self) -> None:
        """There is nothing to open."""

    def build(self) -> int:
        return 0

    def matching(self, question: Question) -> Any:
        """The lazy frame of the rows that match."""
        body = self._polars.col("body")
        if question.shape == "substring":
            return self._frame.filter(body.str.contains_any(list(question.words), ascii_case_insensitive=True))
        conditions = [body.str.contains(expression) for expression in question.expressions]
        joined = self._polars.any_horizontal if question.shape == "or" else self._polars.all_horizontal
        return self._frame.filter(joined(conditions))

    def question(self, question: Question) -> Callable[[], Any] | None:
        found, polars = self.matching(question), self._polars
        match question.kind:
            case "count":
                return lambda: int(found.select(polars.len()).collect().item())
            case "ids":
                return lambda: found.select("id").collect().to_series().to_numpy()
            case "groups":
                figures = found.group_by("category").agg(polars.len(), polars.col("views").sum())
                return lambda: {c: (n, total) for c, n, total in figures.collect().iter_rows()}
            case _:
                return None


class DuckDBScan:
    """DuckDB's SQL over the files."""

    def __init__(self, files: Sequence[str], threads: int) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": threads})
        self._connection.execute(f"CREATE VIEW docs AS SELECT * FROM read_parquet({list(files)!r})")

    def open(self) -> None:
        """There is nothing to open."""

    def build(self) -> int:
        return 0

    def question(self, question: Question) -> Callable[[], Any] | None:
        run = self._connection.execute
        if question.shape == "substring":
            where = f"contains(lower(body), '{question.words[0]}')"
        else:
            where = " AND ".join(
                f"regexp_matches(body, '{one.removeprefix('(?i)')}', 'i')" for one in question.expressions
            )
        match question.kind:
            case "count":
                return lambda: int(run(f"SELECT count(*) FROM docs WHERE {where}").fetchall()[0][0])
            case "ids":
                return lambda: run(f"SELECT id FROM docs WHERE {where}").fetchnumpy()["id"]
            case "groups":
                text = f"SELECT category, count(*), sum(views) FROM docs WHERE {where} GROUP BY category"
                return lambda: {c: (n, int(total)) for c, n, total in run(text).fetchall()}
            case _:
                return None


class SparkScan:
    """Spark on the files, without Delta and without anything of ours."""

    def __init__(self, files: Sequence[str], session: Any) -> None:
        self.session, self._files = session, list(files)

    @property
    def frame(self) -> Any:
        """The rows, as a frame that is made for each question, as ours are."""
        return self.session.read.parquet(*self._files)

    def open(self) -> None:
        """There is nothing to open."""

    def build(self) -> int:
        return 0

    def question(self, question: Question) -> Callable[[], Any] | None:
        from pyspark.sql import functions as sf

        def found() -> Any:
            if question.shape == "substring":
                return self.frame.where(sf.contains(sf.lower("body"), sf.lit(question.words[0])))
            rows = self.frame
            for expression in question.expressions:
                rows = rows.where(sf.col("body").rlike(expression))
            return rows

        match question.kind:
            case "count":
                return lambda: int(found().count())
            case "ids":
                return lambda: found().select("id").toArrow().column("id").to_numpy()
            case "groups":
                figures = (sf.count("*"), sf.sum("views"))
                return lambda: {row[0]: (row[1], row[2]) for row in found().groupBy("category").agg(*figures).collect()}
            case _:
                return None
