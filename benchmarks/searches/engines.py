"""Those who have an index: SQLite's FTS5, LanceDB and bm25s, each built over the same documents.

FTS5 keeps no copy of the text (``content=''``), as our splits do not; categories and views lie in a table beside it. LanceDB
keeps its rows in its own format; the bytes counted are those of its index. Its tokeniser neither stems nor drops words,
as ours by default. bm25s ranks words and does nothing else.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from benchmarks.searches.questions import TOP, Question

__all__ = ["Bm25s", "Lance", "SqliteFts"]

Rows = Callable[[], Iterator[pa.Table]]


class SqliteFts:
    """FTS5 in a file, by words or by trigrams."""

    def __init__(self, folder: Path, rows: Rows, tokenizer: Literal["unicode61", "trigram"]) -> None:
        self._path, self._rows, self._tokenizer = folder / f"{tokenizer}.sqlite", rows, tokenizer

    def open(self) -> None:
        self._connection = sqlite3.connect(self._path)

    def build(self) -> int:
        connection = self._connection = sqlite3.connect(self._path)
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"CREATE VIRTUAL TABLE fts USING fts5(body, content='', tokenize='{self._tokenizer}')")
        connection.execute("CREATE TABLE docs (id INTEGER PRIMARY KEY, category TEXT, views INTEGER)")
        for block in self._rows():
            ids, bodies, categories, views = (block.column(c).to_pylist() for c in ("id", "body", "category", "views"))
            connection.executemany("INSERT INTO fts(rowid, body) VALUES (?, ?)", zip(ids, bodies, strict=True))
            connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", zip(ids, categories, views, strict=True))
        connection.execute("INSERT INTO fts(fts) VALUES ('optimize')")
        connection.commit()
        return self._path.stat().st_size

    def question(self, question: Question) -> Callable[[], Any] | None:
        if self._tokenizer == "trigram":
            if question.shape != "substring":
                return None
            match = f'"{question.words[0]}"'
        elif question.shape in ("substring", "or"):  # its weights of words are others, and so is a ranking by several
            return None
        elif question.shape == "phrase":
            match = f'"{" ".join(question.words)}"'
        else:
            match = f"{question.words[0]}*" if question.shape == "prefix" else " AND ".join(question.words)
        run = self._connection.execute
        match question.kind:
            case "count":
                return lambda: int(run("SELECT count(*) FROM fts WHERE fts MATCH ?", [match]).fetchone()[0])
            case "top":
                text = f"SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT {TOP}"
                return lambda: [row for (row,) in run(text, [match])]
            case "ids":
                return lambda: np.array([row for (row,) in run("SELECT rowid FROM fts WHERE fts MATCH ?", [match])])
            case _:
                text = (
                    "SELECT category, count(*), sum(views) FROM fts JOIN docs ON docs.id = fts.rowid "
                    "WHERE fts MATCH ? GROUP BY category"
                )
                return lambda: {c: (n, total) for c, n, total in run(text, [match])}


class Lance:
    """LanceDB's full-text index, with positions."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        self._folder, self._rows = folder / "lance", rows

    def open(self) -> None:
        import lancedb

        self._table = lancedb.connect(str(self._folder)).open_table("docs")
        self._docs = self._table.count_rows()

    def build(self) -> int:
        import lancedb
        from lancedb.index import FTS

        shutil.rmtree(self._folder, ignore_errors=True)
        database = lancedb.connect(str(self._folder))
        columns = ["id", "body", "category", "views"]
        blocks = (batch for block in self._rows() for batch in block.select(columns).to_batches())
        first = next(blocks)

        def batches() -> Iterator[pa.RecordBatch]:
            yield first
            yield from blocks

        self._table = database.create_table("docs", batches(), schema=first.schema)
        self._docs = self._table.count_rows()
        settings = FTS(
            with_position=True, stem=False, remove_stop_words=False, ascii_folding=False, max_token_length=None
        )
        self._table.create_index("body", config=settings)
        return sum(
            file.stat().st_size for file in (self._folder / "docs.lance" / "_indices").rglob("*") if file.is_file()
        )

    def question(self, question: Question) -> Callable[[], Any] | None:
        from lancedb.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

        terms = [MatchQuery(word, "body") for word in question.words]
        match question.shape:
            case "term":
                query: Any = terms[0]
            case "and":
                query = BooleanQuery([(Occur.MUST, one) for one in terms])
            case "or":
                query = BooleanQuery([(Occur.SHOULD, one) for one in terms])
            case "phrase":
                query = PhraseQuery(" ".join(question.words), "body")
            case _:
                return None

        def found(columns: list[str], limit: int) -> pa.Table:
            # It returns the score in any case, and warns where it is not named.
            return self._table.search(query, query_type="fts").select([*columns, "_score"]).limit(limit).to_arrow()

        match question.kind:
            case "count":
                return lambda: found(["id"], self._docs).num_rows
            case "top":
                return lambda: found(["id"], TOP).column("id").to_pylist()
            case "ids":
                return lambda: found(["id"], self._docs).column("id").to_numpy()
            case _:

                def groups() -> dict[str, tuple[int, int]]:
                    rows = found(["category", "views"], self._docs).group_by("category")
                    figures = rows.aggregate([("views", "count"), ("views", "sum")]).to_pylist()
                    return {row["category"]: (row["views_count"], row["views_sum"]) for row in figures}

                return groups


class Bm25s:
    """bm25s: scores of all documents as a sparse matrix, in memory, and saved."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        self._folder, self._rows = folder / "bm25s", rows

    def open(self) -> None:
        import bm25s

        self._ranker = bm25s.BM25.load(str(self._folder), load_corpus=False)

    def build(self) -> int:
        import bm25s

        texts = [text for block in self._rows() for text in block.column("body").to_pylist()]
        tokens = bm25s.tokenize(texts, stopwords=None, show_progress=False)  # type: ignore[arg-type]
        del texts
        self._ranker = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
        self._ranker.index(tokens, show_progress=False)
        self._ranker.save(str(self._folder), show_progress=False)
        return sum(file.stat().st_size for file in self._folder.iterdir())

    def question(self, question: Question) -> Callable[[], Any] | None:
        if question.kind != "top" or question.shape not in ("term", "or"):
            return None
        words = [list(question.words)]

        def top() -> list[int]:
            rows, scores = self._ranker.retrieve(words, k=TOP, show_progress=False)
            return [int(row) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]

        return top
