"""Groups, distinct rows, sets and joins by more columns than a key has bits for, with nulls, floats and texts among them."""

from __future__ import annotations

import pytest
from tests.amounts import everyday

from .views import holds

_EXPRESSIONS = ["s", "v", "d", "e", *(f"k + {i}" for i in range(40)), *(f"concat(s, '{i}')" for i in range(30))]
_NAMED = [f"{text} AS c{i}" for i, text in enumerate(_EXPRESSIONS)]
_OTHERS = [t.replace("v", "cast(n AS double)").replace("e AS", "date'2024-02-28' AS") for t in _NAMED]
_NAMES = ", ".join(f"c{i}" for i in range(len(_EXPRESSIONS)))
_LEFT, _RIGHT = f"SELECT {', '.join(_NAMED)} FROM t", f"SELECT {', '.join(_OTHERS)} FROM u"
_EQUAL = " AND ".join(f"a.c{i} = b.c{i}" for i in range(4, len(_EXPRESSIONS)))
_SAFE = " AND ".join(f"a.c{i} <=> b.c{i}" for i in range(4, len(_EXPRESSIONS)))


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {_NAMES}, count(*) AS n, max(c4) AS m FROM ({_LEFT}) GROUP BY {_NAMES}",
        f"SELECT c3, c60, count(*) AS n FROM ({_LEFT}) GROUP BY {_NAMES}",
        f"SELECT DISTINCT {_NAMES} FROM ({_LEFT})",
        f"SELECT {_NAMES} FROM ({_LEFT}) UNION {_RIGHT}",
        f"{_LEFT} INTERSECT {_RIGHT}",
        f"{_LEFT} EXCEPT {_RIGHT}",
        f"{_LEFT} EXCEPT ALL {_RIGHT}",
        f"SELECT a.c0, a.c4, b.c2 FROM ({_LEFT}) a JOIN ({_RIGHT}) b ON {_EQUAL}",
        f"SELECT a.c0, a.c4, b.c2 FROM ({_LEFT}) a LEFT JOIN ({_RIGHT}) b ON {_SAFE}",
        f"SELECT a.c0, a.c4 FROM ({_LEFT}) a LEFT ANTI JOIN ({_RIGHT}) b ON {_EQUAL}",
        f"SELECT a.*, b.c4 AS other FROM ({_LEFT}) a LEFT JOIN ({_RIGHT}) b ON a.c4 = b.c4 AND a.c0 < b.c0",
        f"SELECT a.c4 AS other, b.* FROM ({_LEFT}) a FULL JOIN ({_RIGHT}) b ON a.c4 = b.c4 AND a.c0 < b.c0",
        f"SELECT * FROM ({_LEFT}) a WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = a.c4 AND u.s > a.c0)",
        f"SELECT c0, count(DISTINCT {', '.join(f'c{i}' for i in range(4, 74))}) AS n FROM ({_LEFT}) GROUP BY c0",
    ],
    ids=lambda text: text.split(" FROM ")[-1][-40:],
)
def test_a_key_has_any_number_of_columns(text: str) -> None:
    holds(text, steps=everyday(6, soak=8))
