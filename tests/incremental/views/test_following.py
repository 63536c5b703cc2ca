"""Following: each version of a source is in the view once, whatever comes while it runs and whoever stops when."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import headwater as hw
from headwater.base.errors import InputError


def test_what_is_there_is_followed_and_then_it_ends(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 1}])
    view = lake.view("n", "SELECT count(*) AS n FROM orders")
    found = []
    for report in view.follow(available_now=True):
        found.append(report.mode)
        if len(found) < 3:
            orders.append([{"id": len(found)}])
    assert found == ["full", "incremental", "incremental"]
    assert view.to_pylist() == [{"n": 3}]
    assert list(view.follow(available_now=True)) == []


def test_changes_that_come_are_followed(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 1}])
    view = lake.view("n", "SELECT count(*) AS n FROM orders")

    def write() -> None:
        for number in range(5):
            orders.append([{"id": number}])

    writing = threading.Thread(target=write)
    last = None
    for report in view.follow(every_seconds=0.02):
        assert last is None or report.before == last, "each goes on from the one before"
        last = report.after
        if report.mode == "full":
            writing.start()
        if report.after["orders"] == 5:
            break
    writing.join()
    assert view.to_pylist() == [{"n": 6}]


def test_a_pause_is_a_number_above_zero(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("orders", [{"id": 1}])
    with pytest.raises(InputError, match="every_seconds"):
        lake.view("n", "SELECT count(*) AS n FROM orders").follow(every_seconds=0)
