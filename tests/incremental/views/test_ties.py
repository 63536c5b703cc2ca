"""`verify` raises no alarm where SQL leaves the answer open: on the first build, after changes, and with policy full."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw

_ROWS = [
    {"ename": n, "dept": d, "sal": s} for n, d, s in [("c", 1, 5), ("a", 1, 5), ("b", 2, 5), ("d", 2, 7), (None, 1, 7)]
]
_MORE = [{"ename": n, "dept": d, "sal": s} for n, d, s in [("e", 1, 7), ("0", 2, 5), ("a", 1, 5)]]
_QUERY = (
    "SELECT *, first_value(ename) OVER () AS f, last_value(ename) OVER (ORDER BY sal) AS l,"
    " nth_value(ename, 2) OVER (PARTITION BY dept ORDER BY sal RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS n,"
    " any_value(ename) OVER (PARTITION BY dept) AS a, max_by(ename, sal) OVER (PARTITION BY dept) AS m FROM emp"
)
_GROUPED = (
    "SELECT dept, max_by(ename, sal) AS x, min_by(ename, sal) AS n, mode(sal) AS m, first(ename) AS f,"
    " listagg(ename, ',') WITHIN GROUP (ORDER BY sal) AS l, collect_list(ename) AS c FROM emp GROUP BY dept"
)


@pytest.mark.long
@pytest.mark.parametrize("query", [_QUERY, _GROUPED])
@pytest.mark.parametrize("policy", ["auto", "full"])
def test_a_view_over_ties_is_verified(tmp_path: Path, query: str, policy: str) -> None:
    with hw.connect(str(tmp_path / "lake")) as lake:
        emp = lake.write("emp", _ROWS)
        view = lake.view("v", query, policy=policy)  # type: ignore[arg-type]
        view.refresh()
        assert view.verify().equal
        emp.append(_MORE)
        view.refresh()
        assert view.verify().equal
        emp.delete("ename = 'b'")
        view.refresh()
        assert view.verify().equal
