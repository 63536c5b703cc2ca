"""The items of a select list by their places, and the fix for two columns of one name."""

from __future__ import annotations

import pytest

from headwater.base.errors import SchemaError
from headwater.sql.select_items import check_names, items_of


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("SELECT a, b FROM t", ["a", "b"]),
        ("SELECT DISTINCT a, f(b, c) AS d", ["a", "f(b, c) AS d"]),
        ("WITH x AS (SELECT 1, 2) SELECT * EXCEPT (a), b FROM x", ["* EXCEPT (a)", "b"]),
        ("SELECT a IS DISTINCT FROM b, (SELECT 1, 2 FROM t) FROM t", ["a IS DISTINCT FROM b", "(SELECT 1, 2 FROM t)"]),
        ("(SELECT a, b FROM t)", ["a", "b"]),
        ("SELECT a -- , x\n, b FROM t UNION SELECT c, d", ["a", "b"]),
        ("FROM t SELECT a, 'x, y' WHERE a > 1", ["a", "'x, y'"]),
        ("VALUES (1, 2)", []),
    ],
)
def test_items(text: str, items: list[str]) -> None:
    assert [text[start:end] for start, end in items_of(text)] == items


@pytest.mark.parametrize(
    ("text", "names", "at", "fix"),
    [
        ("SELECT t.id, u.id FROM t", ["id", "id"], "u.id", "u.id AS id_2"),
        ("SELECT id,\n  upper(x) AS Id FROM t", ["id", "Id"], "upper", "upper(x) AS Id_2"),
        ("SELECT count(*), count(*) FROM t", ["count(1)", "count(1)"], "count(*) FROM", "count(*) AS count_2"),
        ("SELECT *, id FROM t", ["id", "x", "id"], "id FROM", "id AS id_2"),
        ("SELECT id, id_2, id FROM t", ["id", "id_2", "id"], "id FROM", "id AS id_3"),
        ("SELECT * FROM t JOIN u", ["id", "id"], "*", "list the columns"),
    ],
)
def test_two_columns_of_one_name(text: str, names: list[str], at: str, fix: str) -> None:
    with pytest.raises(SchemaError) as caught:
        check_names(names, text)
    assert caught.value.code == "E1205"
    assert caught.value.position == text.index(at)
    assert fix in (caught.value.hint or "")


def test_names_of_their_own_are_fine() -> None:
    check_names(["a", "b", "a_2"], "SELECT a, b, a_2 FROM t")
