"""Every act of the project's story holds, and a wrong truth is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.demo.act import Act
from headwater.demo.cards.acts.build import build
from headwater.demo.cards.acts.crash import crash
from headwater.demo.cards.acts.day import land
from headwater.demo.cards.acts.replay import ask, replay
from headwater.demo.cards.stage import Served, set_up
from headwater.demo.cards.telling import tell
from headwater.demo.cards.world import make

NODES = {"cases", "case_search", "customer_online", "customer_spend", "disputes", "merchant_day", "velocity"}


def test_the_world_is_the_same_every_time() -> None:
    one, two = make(), make()
    assert one.transactions.equals(two.transactions) and one.day.chargebacks.equals(two.day.chargebacks)
    assert one.planted == two.planted and one.disputed == two.disputed


@pytest.mark.spark
def test_every_act_holds(spark: Any, tmp_path: Path) -> None:
    acts = {act.title.partition(":")[0]: act for act in tell(tmp_path, lambda: spark)}
    assert [title for title, act in acts.items() if not act.holds] == []
    assert {row[0] for row in rows(acts["A project is built"])} == NODES
    assert {row[2] for row in rows(acts["A project is built"])} == {"full"}
    assert {row[1] for row in rows(acts["A day lands"])} == {"incremental"}
    traced = {row[0] for row in rows(acts["One correction, everywhere"])}
    assert {"transactions", *NODES} - traced == {"disputes"}  # it does not read payments
    leaked = acts["The leak"].facts
    assert float(leaked["AUC by event time"]) > float(leaked["AUC of what was known"])
    erased = acts["A customer is forgotten, everywhere, with a certificate"]
    assert [row[0] for row in rows(erased)] == ["customers", "transactions", "chargebacks", "support_notes"]
    assert erased.facts["places where it was found"] == 0 < erased.facts["files that held the address"]
    assert {row[2] for row in rows(acts["Proof"])} == {"equal"}
    assert (tmp_path / "lineage.svg").read_text().startswith("<svg")
    with hw.Project.load(tmp_path) as project:  # what is left is a project that works
        assert project.status().ok and project.plan().summary().endswith("noop")


@pytest.mark.spark
def test_a_wrong_truth_is_noticed(spark: Any, tmp_path: Path) -> None:
    stage = set_up(tmp_path, lambda: spark)
    right = stage.world
    stage.world = replace(right, planted=replace(right.planted, cents=right.planted.cents + 1))
    assert not build(stage).holds
    stage.world = replace(right, planted=replace(right.planted, day_payments=1))
    assert not land(stage).holds
    stage.world = right
    unharmed = crash(stage, after=99)  # it ends before so many are published: nobody killed it
    assert not unharmed.holds and unharmed.facts["how the refresh ended"] == "exit code 0"
    assert crash(stage, after=1).holds
    ask(stage)
    assert not replay(stage).holds  # one answer proves nothing
    ask(stage)
    first = stage.served[0]
    stage.served[0] = Served(first.at, first.frontier, first.body + b"\0")
    assert not replay(stage).holds
    stage.project.close()


def rows(act: Act) -> list[Any]:
    assert act.grid is not None
    return list(act.grid.rows)
