"""Hot columns give the rows that the table has, whatever files and batches a split was built from."""

from __future__ import annotations

import pytest

from headwater.lakehouse import Lake


@pytest.mark.parametrize("sizes", [[5_000], [1_500, 700, 1_025], [3, 1, 1_024]])
def test_hot_rows_are_those_of_the_table(lake: Lake, sizes: list[int]) -> None:
    first = 0
    for size in sizes:
        numbers = range(first, first + size)
        lake.write(
            "docs", [{"id": n, "body": f"word{n} {'even' if n % 2 == 0 else 'odd'}"} for n in numbers], mode="append"
        )
        first += size
    hot = lake.index("hot", "docs", text="body", hot=["id"], refresh=True)
    for n in (0, first // 2, first - 1):
        assert hot.search(f"word{n}", columns=["id"]).to_pylist() == [{"id": n}]
    found = hot.search("even", columns=["id"], k=None).to_arrow().column("id").to_pylist()
    assert sorted(found) == list(range(0, first, 2))
    both = hot.search("even", k=None).to_arrow()  # these come from the table
    assert both.column("id").to_pylist() == found


def test_hot_rows_of_merged_splits(lake: Lake) -> None:
    lake.write("docs", [{"id": -1, "body": "first"}])
    hot = lake.index("hot", "docs", text="body", hot=["id"], refresh=True)
    for begin in range(0, 2_000, 200):
        lake.write("docs", [{"id": n, "body": f"word{n}"} for n in range(begin, begin + 200)], mode="append")
        hot.refresh()
    hot.merge()
    for n in (0, 199, 200, 1_023, 1_024, 1_999):
        assert hot.search(f"word{n}", columns=["id"]).to_pylist() == [{"id": n}]


def test_an_index_that_is_made_again_has_its_new_fields(lake: Lake) -> None:
    lake.write("docs", [{"id": 1, "title": "alpha", "body": "beta"}])
    first = lake.index("ix", "docs", text="title", refresh=True)
    assert first.count("title:alpha") == 1
    first.drop()
    assert lake.index("ix", "docs", text="body", refresh=True).count("body:beta") == 1
