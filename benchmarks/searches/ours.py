"""Headwater: a table of the lake and the indexes on it, asked as users ask them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from benchmarks.searches.corpus import CATEGORIES, Corpus
from benchmarks.searches.questions import TOP, Question
from headwater.lake import partitions
from headwater.search.aggregation import stats, terms
from headwater.search.index import SearchIndex

__all__ = ["TABLE", "Headwater", "ask", "query_of", "table_files", "write_table"]

TABLE = "docs"
_BLOCKS_PER_FILE = 10
_PROPERTIES = {"delta.enableDeletionVectors": "true"}


def write_table(folder: Path, corpus: Corpus) -> hw.Lake:
    """A lake with the documents."""
    lake = hw.connect(str(folder))
    table = lake.table(TABLE)
    blocks = corpus.blocks()
    while some := list(itertools.islice(blocks, _BLOCKS_PER_FILE)):
        rows = pa.concat_tables(some)
        if table.exists():
            table.append(rows)
        else:
            table.create(rows.schema, data=rows, properties=_PROPERTIES)
    return lake


def table_files(lake: hw.Lake) -> list[str]:
    """Where the data files lie, for those who scan them."""
    now = lake.table(TABLE).snapshot
    return [str(now.storage.local_path(partitions.decode_path(path))) for path in now.files]


def query_of(question: Question) -> str:
    """A question in the language of searches."""
    words = question.words
    match question.shape:
        case "and":
            return " AND ".join(f"body:{word}" for word in words)
        case "or":
            return " OR ".join(f"body:{word}" for word in words)
        case "phrase":
            return f'body:"{" ".join(words)}"'
        case "prefix":
            return f"body:{words[0]}*"
        case "substring":
            return f"body:*{words[0]}*"
        case _:
            return f"body:{words[0]}"


def ask(index: SearchIndex, question: Question) -> Callable[[], Any]:
    """What answers a question."""
    query = query_of(question)
    match question.kind:
        case "count":
            return lambda: index.count(query)
        case "top":
            return lambda: index.search(query, columns=["id"], k=TOP).to_arrow().column("id").to_pylist()
        case "ids":
            return lambda: index.search(query, columns=["id"], k=None).to_arrow().column("id").to_numpy()
        case _:
            wanted = terms("category", size=len(CATEGORIES), inner={"views": stats("views")})

            def groups() -> dict[str, tuple[int, int]]:
                found = index.aggregate(query, by=wanted)["by"]
                return {one["key"]: (one["rows"], int(one["views"]["sum"])) for one in found}

            return groups


class Headwater:
    """An index on the columns that the peers index too: words of the body, categories, and views; ids are hot."""

    def __init__(self, lake: hw.Lake, name: str, *, trigrams: bool = False, every_column: bool = False) -> None:
        if every_column:
            self.index = lake.index(
                name, TABLE, text=["title", "body"], keyword=["author", "category"],
                numeric=["id", "views", "rating", "closed", "created"], hot=["id"],
            )  # fmt: skip
        else:
            self.index = lake.index(
                name, TABLE, text=["body"], keyword=["category"], numeric=["views"], hot=["id"],
                substring=["body"] if trigrams else (),
            )  # fmt: skip

    def build(self) -> int:
        """Index the table; gives the bytes of the index."""
        self.index.refresh()
        return self.index.details().bytes

    def open(self) -> None:
        """Use the index that was built."""
        self.index.prewarm()

    def question(self, question: Question) -> Callable[[], Any] | None:
        return ask(self.index, question)
