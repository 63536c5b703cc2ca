"""The act of the search index: notes about disputed payments are found, corrected and forgotten."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.demo.act import Act, Grid

if TYPE_CHECKING:
    from headwater.derived.reports import Verification
    from headwater.lakehouse import Lake

__all__ = ["find"]

_FIND = """lake.index("notes_search", "support_notes", text="body", keyword="author", refresh=True)
notes.search('"card stolen" AND (disput* OR chargeback)')"""

_QUERY = '"card stolen" AND (disput* OR chargeback)'
_PLANTED = 7
_OPENINGS = ("Customer called about", "Asked by mail about", "Follow-up on", "Second request for")
_MATTERS = ("a payment that is late", "an address that changed", "a receipt", "a limit on the card", "a refund")
_CLOSINGS = ("Solved.", "Waiting for the merchant.", "Told to wait two days.", "Passed on to payments.")


@dataclass(frozen=True, slots=True)
class _Found:
    """What the searches gave: notes with their scores, at first, after a correction, and after one was deleted."""

    first: list[dict[str, Any]]
    snippet: str
    corrected: int
    behind: float
    forgotten: int
    files_indexed: str
    verified: Verification
    scanned: tuple[int, int]
    """How many notes a scan finds by plain LIKE, and how many the index's filter finds for the same condition."""


def _make_notes(rows: int = 5_000, seed: int = 11) -> pa.Table:
    """Support notes, some of which are about a stolen card and a dispute."""
    rng = np.random.default_rng(seed)
    body = [
        f"{_OPENINGS[a]} {_MATTERS[b]}, payment {p}. {_CLOSINGS[c]}"
        for a, b, c, p in zip(
            rng.integers(0, len(_OPENINGS), rows), rng.integers(0, len(_MATTERS), rows),
            rng.integers(0, len(_CLOSINGS), rows), rng.integers(0, 50_000, rows), strict=True,
        )
    ]  # fmt: skip
    planted = rng.choice(rows, _PLANTED, replace=False)
    for number, at in enumerate(planted):
        words = ("disputed", "disputes", "chargeback")[number % 3]
        body[at] = f"Card stolen on the way home, customer says, and {words}: payment {11 + number}."
    authors = np.array(["ann", "bob", "cem", "dee"])[rng.integers(0, 4, rows)]
    return pa.table({"note_id": np.arange(rows), "author": authors, "body": body})


def _found(lake: Lake) -> _Found:
    """Search notes, correct one that was not about a theft, and delete one."""
    table = lake.write("support_notes", _make_notes())
    notes = lake.index("notes_search", "support_notes", text="body", keyword="author", refresh=True)
    first = notes.search(_QUERY, columns=["note_id", "author"], k=None)
    snippet = first.snippets("body")[0]
    rows = first.to_pylist(scores=True)
    table.update({"body": "'Card found again, dispute withdrawn.'"}, where=f"note_id = {rows[0]['note_id']}")
    corrected = notes.count(_QUERY)
    behind = notes.coverage
    report = notes.refresh()
    table.delete(f"note_id = {rows[1]['note_id']}")
    condition = "body LIKE '%tolen on the wa%' AND author <> 'nobody'"
    scanned = lake.sql(f"SELECT count(*) AS n FROM support_notes WHERE {condition}").scalar()
    filtered = notes.filter(condition, columns=["note_id"]).read_all().num_rows
    forgotten = notes.count(_QUERY)
    return _Found(rows, snippet, corrected, behind, forgotten, report.reason, notes.verify(), (int(scanned), filtered))


def find(lake: Lake) -> Act:
    """The act."""
    said = _found(lake)
    listed = [(row["note_id"], row["author"], f"{row['_score']:.2f}") for row in said.first[:3]]
    return Act(
        "Search: notes on a disputed payment are found, and a correction is seen before the index is refreshed",
        _FIND,
        {
            "the best": re.sub(r"</?b>", "*", said.snippet),
            "found": len(said.first),
            "after a correction": said.corrected,
            "covered then": f"{said.behind:.2%}",
            "the refresh": said.files_indexed,
            "after a note was deleted": said.forgotten,
            "verified": str(said.verified),
        },
        grid=Grid(("note", "author", "score"), listed),
        check="seven notes are found, then six, then five; a LIKE finds through the index what a scan finds",
        holds=said.verified.equal
        and (len(said.first), said.corrected, said.forgotten) == (7, 6, 5)
        and said.scanned == (5, 5)
        and 0 < said.behind < 1,
    )
