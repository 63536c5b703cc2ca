"""Rows that could not be computed with, and were mended before the next refresh, do not stop it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.incremental.views.test_history import forget

import headwater as hw
from headwater.base.errors import ExpressionError
from headwater.incremental.views import live as lives
from headwater.incremental.views import tidying
from headwater.incremental.views.definition import Policy
from headwater.lakehouse import Lake


def made(folder: Path) -> Lake:
    lake = hw.connect(folder)
    lake.sql(
        "CREATE TABLE p(id BIGINT, s STRING, xs ARRAY<BIGINT>) TBLPROPERTIES('delta.enableChangeDataFeed' = 'true')"
    )
    lake.table("p").append([{"id": 1, "s": "1", "xs": [1]}])
    return lake


@pytest.mark.parametrize("policy", ["auto", "strict"])
def test_a_row_that_was_mended_is_followed(policy: Policy, tmp_path: Path) -> None:
    lake = made(tmp_path)
    view = lake.view("v", "SELECT id, CAST(s AS INT) AS n, xs FROM p", policy=policy)
    view.refresh()
    lake.table("p").append([{"id": 2, "s": "bad", "xs": [2, None]}])
    before = view.table.version
    with pytest.raises(ExpressionError) as caught:
        view.refresh()
    assert caught.value.code == "E1303"
    assert view.table.version == before
    lake.sql("UPDATE p SET s = '7' WHERE id = 2")
    report = view.refresh()
    assert (report.mode, report.rows_in, report.rows_out) == ("incremental", 1, 1)
    assert sorted(r["n"] for r in view.to_pylist()) == [1, 7]
    lake.sql("DELETE FROM p WHERE id = 2")
    view.refresh()
    assert view.verify().equal


def test_a_state_is_brought_forward_over_a_mended_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = made(tmp_path)
    view = lake.view("v", "SELECT sum(CAST(s AS INT)) AS n FROM p", policy="strict")
    view.refresh()
    lake.table("p").append([{"id": 2, "s": "bad", "xs": [1]}])
    lake.sql("UPDATE p SET s = '7' WHERE id = 2")
    monkeypatch.setattr(tidying, "soon", lambda *_: None)
    assert view.refresh().mode == "incremental"
    assert lives.live(view._environment.root, "v").behind == 1
    forget(view)
    lake.table("p").append([{"id": 3, "s": "1", "xs": [1]}])
    assert view.refresh().mode == "incremental"
    assert view.to_pylist() == [{"n": 9}]
