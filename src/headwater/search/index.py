"""Search indexes: which rows of a table mention it? What can be asked of one; how it is kept is in `kept_index`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from headwater.search.kept_index import KeptIndex

if TYPE_CHECKING:
    from headwater.search.aggregation import Aggregation
    from headwater.search.result import SearchResult
    from headwater.spark.types import DataFrame

__all__ = ["SearchIndex"]

_WITNESSED = 10
_HITS = 1_000


class SearchIndex(KeptIndex):
    """A search index. Made by ``lake.index``."""

    def search(
        self,
        query: str,
        *,
        columns: Sequence[str] | None = None,
        k: int | None = 10,
        offset: int = 0,
        order_by: str | None = None,
        descending: bool = False,
        filter: str | None = None,  # noqa: A002  as in SQL and in pyarrow
        fields: Sequence[str] | None = None,
        default: Literal["or", "and"] = "or",
        lenient: bool = False,
        vector: Any = None,
        vector_column: str | None = None,
        fuse: Literal["rrf"] = "rrf",
    ) -> SearchResult:
        """The rows that match a query, best first, from the table as it is now.

        Parameters
        ----------
        query
            In the language of `headwater.search.language`: words, ``"phrases"``, ``AND``, ``OR``, ``NOT``,
            ``author:ann``, ``amount:[10 TO 20]``, ``pay*``, ``*ment``, ``refnd~1``, ``/re.*d/``.
        columns
            What is returned of each row; all columns by default, which takes longer than searching.
        k, offset
            How many rows, after skipping some; ``k=None`` gives all.
        order_by, descending
            A column to order by, instead of the score.
        filter
            A condition in Spark SQL that rows have to meet as well, with exactly Spark's meaning.
        fields
            The columns that words are searched in where the query names none; all text fields by default.
        default
            Whether words that stand side by side are joined by OR or by AND.
        lenient
            Leave out what cannot be read; ``ignored`` of the result says what.
        vector, vector_column, fuse
            An embedding that rows should be near to, and the column that has theirs: rows are ranked by both.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> notes = lake.write("notes", [{"id": 1, "body": "Card lost, refund asked"}, {"id": 2, "body": "All good"}])
        >>> ix = lake.index("notes_ix", "notes", text="body", refresh=True)
        >>> ix.search("refund OR chargeback", columns=["id"]).to_pylist()
        [{'id': 1}]
        >>> _ = notes.delete("id = 1")
        >>> ix.search("refund").to_pylist()  # the index is behind, and the answer is right
        []
        """
        from headwater.search.request import Request
        from headwater.search.searching import search

        request = Request(
            query=query, columns=columns, k=k, offset=offset, order_by=order_by, descending=descending, where=filter,
            fields=fields, default=default, lenient=lenient, vector=vector, vector_column=vector_column, fuse=fuse,
        )  # fmt: skip
        return self.steadily(lambda: search(self.reader(), request))

    def found(self, rows: pa.Table) -> list[dict[str, object]]:
        """For each of some rows, a query of words from it, and at which rank the row is found."""
        from headwater.search.witness import query_of

        places: list[dict[str, object]] = []
        for row in rows.slice(0, _WITNESSED).to_pylist():
            query = query_of(self.meant, row)
            if query is None:
                continue
            hits = self.search(query, columns=self.meant.columns, k=_HITS, default="and")
            rank = next((n for n, one in enumerate(hits, 1) if all(one[c] == row[c] for c in self.meant.columns)), None)
            places.append({"query": query, "found": rank is not None, "rank": rank, "hits": len(hits)})
        return places

    def filter(self, where: str, *, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The rows that meet a condition of Spark SQL, exactly those that a scan gives;
        the index helps where it can.
        """
        from headwater.search.filtering import filtered

        return self.steadily(lambda: filtered(self.reader(), where, columns))

    def spark(
        self,
        query: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        k: int | None = None,
        filter: str | None = None,  # noqa: A002  as in `search`
        **options: Any,
    ) -> DataFrame:
        """The rows that match a query, meet a condition, or both, as a lazy Spark DataFrame of the table's version of
        now.

        ``columns`` are all that tasks read, and may have ``_score``. Further options are those of the data source
        (`headwater.search.spark.options`).
        """
        from headwater.search import frame

        session = None if self._environment.session is None else self._environment.session()
        return frame(self, query, session=session, columns=columns, k=k, filter=filter, **options)

    def explain_filter(self, where: str) -> str:
        """How `filter` would find the rows."""
        from headwater.search.filtering import explained

        return explained(self.reader(), where)

    def count(self, query: str = "*", *, filter: str | None = None, default: Literal["or", "and"] = "or") -> int:  # noqa: A002
        """How many rows match."""
        from headwater.search.searching import count

        return self.steadily(lambda: count(self.reader(), query, where=filter, default=default))

    def aggregate(self, query: str = "*", **wanted: Aggregation | Mapping[str, Any]) -> dict[str, Any]:
        """Figures of the rows that match, by name: see `headwater.search.aggregation`."""
        from headwater.search.aggregation import aggregate

        return self.steadily(lambda: aggregate(self.reader(), query, wanted))

    def more_like(
        self, text: str | Mapping[str, str | None], *, columns: Sequence[str] | None = None, k: int | None = 10
    ) -> SearchResult:
        """The rows whose text has most in common with a text, or with texts by the names of columns.

        Some 25 of its words count, those that fewest rows have; ``k=None`` gives every row that has one of these.
        """
        from headwater.search.searching import more_like

        return self.steadily(lambda: more_like(self.reader(), text, columns=columns, k=k))

    def prewarm(self) -> int:
        """Have every split unpacked and open on this machine; gives how many rows can be searched."""
        found = self.reader()
        _ = found.terms
        return int(found.searcher.num_docs)
