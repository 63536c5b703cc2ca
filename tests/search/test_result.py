"""What a result looks like: in a prompt, in a notebook, and as frames of other libraries."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import InputError
from headwater.lakehouse import Lake
from headwater.search.index import SearchIndex


@pytest.fixture
def index(lake: Lake) -> SearchIndex:
    rows = [{"id": n, "body": f"<i>card</i> & number{n}", "x": None if n % 2 else n / 3} for n in range(30)]
    lake.write("t", rows)
    return lake.index("ix", "t", text="body", numeric="id", refresh=True)


def test_in_a_prompt(index: SearchIndex) -> None:
    assert repr(index.search("card", columns=["id", "x"])) == "SearchResult(10 rows of t@0: id, x)"
    assert "left out of the query: 1)" in repr(index.search("(card", lenient=True))


def test_in_a_notebook(index: SearchIndex) -> None:
    shown = index.search("card", columns=["id", "body", "x"], k=None)._repr_html_()
    assert shown.count("<tr>") == 21 and "30 rows of t@0, the first 20" in shown
    assert "<b>card</b>" in shown and "<i>" not in shown and "&lt;i&gt;" in shown and "&amp;" in shown
    ordered = index.search("*", columns=["id", "body"], order_by="id", k=2)._repr_html_()
    assert ordered.count("<tr>") == 3 and "number0" in ordered
    assert index.search("absent", columns=["id"])._repr_html_().count("<tr>") == 1


def test_as_frames(index: SearchIndex) -> None:
    found = index.search("number3 OR number4", columns=["id", "x"])
    arrow = found.to_arrow(scores=True)
    assert arrow.schema.names == ["id", "x", "_score"] and arrow["_score"].to_pylist() == found.scores
    assert found.to_pandas()["id"].tolist() == found.to_polars()["id"].to_list() == arrow["id"].to_pylist()
    assert pa.table(found).num_rows == len(found) == found.total == 2


def test_snippets_of_other_columns_and_rows_that_are_not_there(index: SearchIndex) -> None:
    found = index.search("number7", columns=["id"])
    assert found.snippets("body", length=20) == ["<b>number7</b>"]
    assert found.snippets("body") == ["&lt;i&gt;card&lt;/i&gt; &amp; <b>number7</b>"]
    with pytest.raises(InputError, match="not indexed as text"):
        found.snippets("id")
    with pytest.raises(InputError, match="`row` is 1"):
        found.explain(1)
    assert found.explain(0)["value"] == pytest.approx(found.scores[0], rel=1e-6)
