"""A training set at known times is what a replay of the history gives: each label against the table as it was at its moment."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.amounts import everyday

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError, NotFoundError, UnsupportedError
from headwater.lake.history import commit_times
from headwater.lakehouse import Lake

START = datetime(2026, 1, 1, tzinfo=UTC)
SCORES = pa.schema(
    [("card", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("score", pa.int64()), ("tags", pa.list_(pa.int64()))]
)
LABELS = pa.schema(
    [
        ("id", pa.int64()),
        ("card", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("known", pa.timestamp("us", "UTC")),
    ]
)


class History:
    """A table of scores whose rows come late, are corrected and deleted, with files rewritten in between."""

    def __init__(self, folder: Path, seed: int, commits: int, *, vectors: bool = True) -> None:
        self.lake: Lake = hw.connect(folder)
        self.rng = random.Random(seed)
        self.free = list(range(500))
        self.rng.shuffle(self.free)
        properties = {"delta.enableDeletionVectors": str(vectors).lower()}
        self.scores = self.lake.table("scores")
        self.scores.create(SCORES, data=self._rows(12), properties=properties)
        for _ in range(commits):
            time.sleep(0.002)  # commits of one millisecond are one moment to those who ask
            self._commit()

    def _rows(self, count: int) -> pa.Table:
        rows = []
        for _ in range(count):
            at = START + timedelta(minutes=self.free.pop())
            rows.append(
                {
                    "card": self.rng.choice(["a", "b", "c", None]),
                    "ts": at,
                    "score": self.rng.choice([None, self.rng.randrange(99)]),
                    "tags": self.rng.choice([None, [], [1, 2]]),
                }
            )
        return pa.Table.from_pylist(rows, SCORES)

    def _commit(self) -> None:
        rng, table = self.rng, self.scores
        card = rng.choice(["a", "b", "c"])
        kind = rng.choice(["late", "late", "correct", "correct", "delete", "move", "optimize", "restore", "overwrite"])
        if kind == "late":
            table.append(self._rows(rng.randint(1, 3)))
        elif kind == "correct":
            table.update({"score": "coalesce(score, 0) + 100"}, where=f"card = '{card}' AND score % 3 = 0")
        elif kind == "delete":
            table.delete(f"card = '{card}' AND score % 5 = {rng.randrange(5)}")
        elif kind == "move":
            table.update({"card": "'b'"}, where=f"card = '{card}' AND score % 7 = 1")
        elif kind == "optimize":
            table.optimize()
        elif kind == "restore":
            table.restore(version=rng.randint(0, table.version))
        else:
            table.overwrite(table.to_arrow(where="score >= 20"))

    def labels(self, count: int) -> pa.Table:
        """Labels at any time, known at any moment: before the table, at its commits, between them, and afterwards."""
        moments = sorted(commit_times(self.scores.storage).values())
        rows = []
        for number in range(count):
            ms = self.rng.choice([*moments, self.rng.randint(moments[0] - 5, moments[-1] + 5)])
            known = datetime.fromtimestamp(ms / 1000, UTC) + timedelta(microseconds=self.rng.choice([0, 0, 999]))
            at = START + timedelta(minutes=self.rng.randrange(520))
            card = self.rng.choice(["a", "b", "c", "d", None])
            rows.append({"id": number, "card": card, "ts": at, "known": known})
        return pa.Table.from_pylist(rows, LABELS)

    def replayed(self, label: dict[str, Any], known: datetime | None) -> dict[str, Any]:
        """The features of a label by the plainest way there is."""
        none = {"ts_scores": None, "score": None, "tags": None}
        table: Any = self.scores
        if known is not None:
            try:
                table = table.at(timestamp=known)
            except HeadwaterError:
                return none
        rows = [r for r in table.to_pylist() if r["card"] == label["card"] is not None and r["ts"] <= label["ts"]]
        if not rows:
            return none
        last = max(rows, key=lambda r: r["ts"])
        return {"ts_scores": last["ts"], "score": last["score"], "tags": last["tags"]}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(everyday(3, soak=200)))
def test_a_known_time_join_is_a_replay(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed, everyday(14, soak=40), vectors=seed % 2 == 0)
    labels = history.labels(everyday(50, soak=300))
    found = history.lake.training_set(labels, "scores", time="ts", by="card", known_at="known")
    rows = {row["id"]: row for row in found.to_pylist()}
    for label in labels.to_pylist():
        assert rows[label["id"]] == {**label, **history.replayed(label, label["known"])}, label
    assert len(rows) == labels.num_rows
    # One moment for all is time travel, and so is a delay that ends there.
    at = labels.column("known")[3].as_py()
    one = history.lake.training_set(labels, "scores", time="ts", by="card", known_at=at)
    assert {r["id"]: r["score"] for r in one.to_pylist()} == {
        label["id"]: history.replayed(label, at)["score"] for label in labels.to_pylist()
    }


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_the_report_counts_what_event_time_alone_leaks(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed, 8)
    # Labels whose own times lie among the commits.
    rows = [{**row, "ts": row["known"]} for row in history.labels(40).to_pylist()]
    labels = pa.Table.from_pylist(rows, LABELS)
    found = history.lake.training_set(labels, "scores", time="ts", by="card")
    expected = 0
    for row in found.to_pylist():
        label = {name: row[name] for name in LABELS.names}
        now, then = history.replayed(label, None), history.replayed(label, label["ts"])
        assert {name: row[name] for name in now} == now
        expected += now != then
    assert found.report.leaked == expected > 0
    assert found.report.rows == 40
    assert str(expected) in str(found.report)


@pytest.mark.long
def test_the_rows_that_a_stream_selects_have_the_history_of_their_table(tmp_path: Path) -> None:
    history = History(tmp_path, 5, 10)
    labels = history.labels(40)
    low = (
        history.lake.stream("scores", time="ts", by="card").filter("score >= 0").select("card", "ts", half="score / 2")
    )
    found = history.lake.training_set(labels, low, time="ts", by="card", known_at="known").to_pylist()
    for row in found:
        table: Any = history.scores
        try:
            rows = table.at(timestamp=row["known"]).to_pylist()
        except HeadwaterError:
            rows = []
        fitting = [r for r in rows if r["score"] is not None and r["card"] == row["card"] is not None]
        last = max((r for r in fitting if r["ts"] <= row["ts"]), key=lambda r: r["ts"], default=None)
        assert row["half"] == (None if last is None else last["score"] / 2)
    rolled = history.lake.stream("scores", time="ts", by="card").rolling("5m", n="count(*)")
    with pytest.raises(UnsupportedError, match="depends on other rows"):
        history.lake.training_set(labels, rolled, time="ts", by="card", known_at="known")
    report = history.lake.training_set(labels, rolled, time="ts", by="card").report
    assert report.leaked is None
    assert "not known" in str(report)


def test_a_feature_table_is_known_when_it_was_published(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    rows = {"card": ["a"], "ts": [START], "amount": [5]}
    payments = lake.write("payments", pa.table(rows))

    def spent(lake: Any) -> Any:
        return lake.stream("payments", time="ts", by="card").cumulative(spent="sum(amount)")

    table = lake.features("spent", spent, refresh=True)
    payments.append(pa.table({"card": ["a"], "ts": [START + timedelta(hours=1)], "amount": [7]}))
    time.sleep(0.002)
    between = datetime.now(UTC)
    time.sleep(0.002)
    table.refresh()
    time.sleep(0.002)
    after = datetime.now(UTC)
    labels = pa.table({"card": ["a", "a"], "at": [START + timedelta(days=1)] * 2, "known": [between, after]})
    found = lake.training_set(labels, "spent", time="at", by="card", known_at="known")
    assert sorted(found.to_arrow()["spent"].to_pylist()) == [5, 12]


def test_a_vacuum_says_since_when_it_can_be_told(tmp_path: Path) -> None:
    history = History(tmp_path, 1, 0, vectors=False)
    before = datetime.now(UTC)
    time.sleep(0.002)
    history.scores.update({"score": "1"})
    time.sleep(0.002)
    labels = pa.table({"card": ["a"], "ts": [START + timedelta(days=1)], "known": [before]})
    ask: dict[str, Any] = {"time": "ts", "by": "card", "known_at": "known"}
    assert history.lake.training_set(labels, "scores", **ask).to_arrow().num_rows == 1
    history.scores.vacuum(retention_hours=0, enforce_retention=False)
    since = commit_times(history.scores.storage)[1]
    with pytest.raises(NotFoundError, match="is not known any more") as caught:
        history.lake.training_set(labels, "scores", **ask)
    assert datetime.fromtimestamp(since / 1000, UTC).isoformat(timespec="milliseconds") in str(caught.value)
    labels = labels.set_column(2, "known", pa.array([datetime.fromtimestamp(since / 1000, UTC)]))
    (row,) = history.lake.training_set(labels, "scores", **ask).to_pylist()
    assert row["score"] in (1, None)


def test_what_cannot_be_joined_says_what_to_give(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("scores", pa.table({"card": ["a"], "ts": [START], "score": [1]}))
    labels = pa.table({"card": ["a"], "at": [START], "n": [1]})
    for given, match in (
        ({"time": "at", "by": "card"}, "lake.stream"),
        ({"by": "card"}, "`time` is None"),
        ({"time": "nothing", "by": "card"}, "no column `nothing`"),
    ):
        with pytest.raises(HeadwaterError, match=match):
            lake.training_set(labels, "scores", **given)
    scores = lake.stream("scores", time="ts", by="card")
    for known_at, match in (("n", "timestamps"), ("soon", "a column of the labels"), (3, "known_at")):
        with pytest.raises(InputError, match=match):
            lake.training_set(labels, scores, time="at", by="card", known_at=known_at)
    with pytest.raises(NotFoundError, match="no column `card`"):
        lake.training_set(labels.drop_columns(["card"]), scores, time="at", known_at=START)
    with pytest.raises(InputError, match="each source once"):
        lake.training_set(labels, [scores, scores], time="at", by="card")
    with pytest.raises(InputError, match="features"):
        lake.training_set(labels, [], time="at", by="card")
    numbered = pa.table({"card": [1], "at": [START]})
    dated = pa.table({"card": ["a"], "at": pa.array([START.date()])})
    for moment in (None, START):
        with pytest.raises(InputError, match="card int64 and card string"):
            lake.training_set(numbered, scores, time="at", by="card", known_at=moment)
        with pytest.raises(InputError, match=r"date32.* and ts timestamp.* of `scores`"):
            lake.training_set(dated, scores, time="at", by="card", known_at=moment)


def test_two_rows_that_could_be_meant_are_refused(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("scores", pa.table({"card": ["a", "a"], "ts": [START, START], "score": [1, 2]}))
    labels = pa.table({"card": ["a"], "ts": [START]})
    now = datetime.now(UTC) + timedelta(seconds=1)
    with pytest.raises(HeadwaterError, match="two rows"):
        lake.training_set(labels, "scores", time="ts", by="card", known_at=now).to_arrow()
    stream = lake.stream("scores", time="ts", by="card", tiebreak="score")
    (row,) = lake.training_set(labels, stream, time="ts", by="card", known_at=now).to_pylist()
    assert row["score"] == 2


@pytest.mark.long
def test_the_rows_are_the_same_however_little_memory_there_is(tmp_path: Path) -> None:
    from headwater.timeseries.running.here import run_here
    from headwater.timeseries.running.narrowing import narrowed

    history = History(tmp_path, 7, 12)
    labels = history.labels(60)
    found = history.lake.training_set(labels, "scores", time="ts", by="card", known_at="known")
    plan = narrowed(found._plan)
    expected = run_here(plan).sort_by("id").to_pylist()
    for budget, parts in ((400, 1), (900, 3), (1 << 20, 2)):
        assert run_here(plan, budget_bytes=budget, parts=parts).sort_by("id").to_pylist() == expected


@pytest.mark.spark
def test_spark_gives_the_same_rows(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.timeseries.features import computing

    history = History(tmp_path, 11, 8)
    labels = history.labels(40)
    lake = hw.connect(tmp_path, spark=spark)
    found = lake.training_set(labels, "scores", time="ts", by="card", known_at="known")
    expected = found.to_arrow().sort_by("id").to_pylist()
    monkeypatch.setattr(computing, "HERE_ROWS", -1)
    assert "by Spark" in found.explain()
    assert found.to_arrow().sort_by("id").to_pylist() == expected
    assert lake.training_set(labels, "scores", time="ts", by="card").report.rows == 40
    monkeypatch.undo()
    frame = spark.createDataFrame(labels.select(["id", "card", "ts", "known"]))
    of_frame = lake.training_set(frame, "scores", time="ts", by="card", known_at="known")
    assert "by Spark" in of_frame.explain()
    assert of_frame.to_arrow().sort_by("id").to_pylist() == expected
    of_frame.write("trained")
    assert lake.table("trained").count() == 40


def test_columns_that_changed_are_told_under_their_names_of_today(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    table = lake.table("scores")
    rows = pa.table(
        {"card": ["a", "b"], "ts": [START, START], "score": pa.array([1, 2], pa.int32()), "old": ["x", "y"]}
    )
    table.create(rows.schema, data=rows, properties={"delta.columnMapping.mode": "name"})
    moments = [datetime.now(UTC)]

    def then(change: Any) -> None:
        time.sleep(0.002)
        change()
        time.sleep(0.002)
        moments.append(datetime.now(UTC))

    then(lambda: table.rename_column("score", "points"))
    then(lambda: table.add_columns({"more": pa.int64()}))
    then(lambda: table.update({"points": "points + 10", "more": "5"}, where="card = 'a'"))
    then(lambda: table.drop_column("old"))
    then(table.optimize)
    then(lambda: table.delete("card = 'a'"))
    labels = pa.table({"card": ["a"] * len(moments), "ts": [START] * len(moments), "known": moments})
    found = lake.training_set(labels, "scores", time="ts", by="card", known_at="known").to_arrow().sort_by("known")
    assert found.column("points").to_pylist() == [1, 1, 1, 11, 11, 11, None]
    assert found.column("more").to_pylist() == [None, None, None, 5, 5, 5, None]
    assert "old" not in found.column_names


@pytest.mark.long
def test_a_log_that_was_cleaned_up_says_since_when_it_can_be_told(tmp_path: Path) -> None:
    from headwater.base import settings

    lake = hw.connect(tmp_path)
    table = lake.write("scores", pa.table({"card": ["a"], "ts": [START], "score": [1]}))
    moments = [datetime.now(UTC)]
    for score in (2, 3, 4):
        time.sleep(0.002)
        with settings.override(checkpoint_interval=1 if score == 3 else 100):
            table.update({"score": str(score)})
        time.sleep(0.002)
        moments.append(datetime.now(UTC))
    for version in (0, 1):
        (tmp_path / "scores" / "_delta_log" / f"{version:020d}.json").unlink()
    again = hw.connect(tmp_path)
    labels = pa.table({"card": ["a"] * 2, "ts": [START] * 2, "known": moments[2:]})
    ask: dict[str, Any] = {"time": "ts", "by": "card", "known_at": "known"}
    assert sorted(again.training_set(labels, "scores", **ask).to_arrow()["score"].to_pylist()) == [3, 4]
    early = labels.set_column(2, "known", pa.array([moments[0], moments[3]]))
    with pytest.raises(NotFoundError, match="is not known any more"):
        again.training_set(early, "scores", **ask)
