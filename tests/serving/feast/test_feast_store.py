"""The online store for Feast, in real feature stores: it answers what Feast's own store answers, from a server and from a folder."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.serving.server.running import RunningServer, running

import headwater as hw
from headwater.base.errors import SchemaError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    feast = pytest.importorskip("feast")
    from feast import types as ft
    from feast.infra.offline_stores.file_source import FileSource
    from feast.protos.feast.types.EntityKey_pb2 import EntityKey
    from feast.protos.feast.types.Value_pb2 import Value

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

NOW = datetime.now(UTC).replace(microsecond=0)
OURS = "headwater.serving.feast_store.HeadwaterOnlineStore"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    made = tmp_path_factory.mktemp("serve")
    (made / "serve.yaml").write_text(f"server:\n  port: 0\n  data_dir: {made / 'data'}\n")
    with running([sys.executable, "-m", "headwater.cli", "serve", "--json", str(made / "serve.yaml")]) as found:
        yield found


class Repo:
    """A feature repository: its store, and what it can be asked for."""

    def __init__(self, folder: Path, online: dict[str, Any], project: str) -> None:
        self.folder, self.online, self.project = folder, online, project
        folder.mkdir(parents=True, exist_ok=True)
        self.store = self.open()

    def open(self, **changes: Any) -> Any:
        config = feast.RepoConfig(
            project=self.project,
            provider="local",
            registry=str(self.folder / "registry.db"),
            online_store={**self.online, **changes},
            offline_store={"type": "file"},
            entity_key_serialization_version=3,
            repo_path=self.folder,
        )
        return feast.FeatureStore(config=config)

    def source(self, name: str, rows: pd.DataFrame) -> FileSource:
        path = self.folder / f"{name}.parquet"
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), path, coerce_timestamps="us")
        return FileSource(name=f"{name}_source", path=str(path), timestamp_field="event_timestamp")


@pytest.fixture(params=["server", "folder"])
def ours(request: pytest.FixtureRequest, tmp_path: Path) -> Repo:
    if request.param == "folder":
        return Repo(tmp_path / "ours", {"type": OURS, "path": "data/online"}, "shop")
    # Each test has a project of its own on the server that they share.
    project = f"shop_{abs(hash(request.node.nodeid)) % 10**9}"
    url = request.getfixturevalue("server").url
    return Repo(tmp_path / "ours", {"type": OURS, "url": url}, project)


@pytest.fixture
def theirs(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "theirs", {"type": "sqlite", "path": str(tmp_path / "theirs.db")}, "shop")


DRIVER = feast.Entity(name="driver", join_keys=["driver_id"], value_type=feast.ValueType.INT64)
SHOP = feast.Entity(name="shop", join_keys=["shop_name"], value_type=feast.ValueType.STRING)
KINDS = {
    "i32": ft.Int32,
    "i64": ft.Int64,
    "f32": ft.Float32,
    "f64": ft.Float64,
    "flag": ft.Bool,
    "text": ft.String,
    "raw": ft.Bytes,
    "seen": ft.UnixTimestamp,
    "vector": ft.Array(ft.Float32),
    "counts": ft.Array(ft.Int64),
    "words": ft.Array(ft.String),
    "flags": ft.Array(ft.Bool),
}


def driver_rows(count: int = 20, shift: int = 0) -> pd.DataFrame:
    n = range(count)
    return pd.DataFrame(
        {
            "driver_id": np.arange(count, dtype=np.int64),
            "event_timestamp": [NOW - timedelta(minutes=60 - shift - i) for i in n],
            "i32": np.arange(count, dtype=np.int32) - 5 + shift,
            "i64": np.arange(count, dtype=np.int64) * 10**12,
            "f32": (np.arange(count) / 3 + shift).astype(np.float32),
            "f64": np.arange(count) / 7,
            "flag": [i % 2 == 0 for i in n],
            "text": [f"schön {i}" for i in n],
            "raw": [bytes([i, 255]) for i in n],
            "seen": [NOW - timedelta(days=i) for i in n],
            "vector": [[float(i), i / 2] for i in n],
            "counts": [[i, -i, 7] for i in n],
            "words": [[f"w{i}", "x"] for i in n],
            "flags": [[i % 2 == 0, True] for i in n],
        }
    )


def stats(repo: Repo, rows: pd.DataFrame | None = None, *, without: tuple[str, ...] = ()) -> Any:
    rows = driver_rows() if rows is None else rows
    kept = {name: kind for name, kind in KINDS.items() if name not in without}
    return feast.FeatureView(
        name="stats",
        entities=[DRIVER],
        ttl=timedelta(days=30),
        schema=[
            feast.Field(name="driver_id", dtype=ft.Int64),
            *(feast.Field(name=n, dtype=k) for n, k in kept.items()),
        ],
        source=repo.source("stats", rows),
    )


def features(store: Any, names: list[str], rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = store.get_online_features(features=names, entity_rows=rows).to_dict()
    return found


ALL = [f"stats:{name}" for name in KINDS]
ASKED = [{"driver_id": n} for n in (3, 19, 0, 77, 3)]


def materialized(repo: Repo) -> Any:
    repo.store.apply([DRIVER, stats(repo)])
    repo.store.materialize(NOW - timedelta(days=1), NOW + timedelta(minutes=1))
    return repo.store


def test_what_is_materialized_is_answered_as_by_feasts_own_store(ours: Repo, theirs: Repo) -> None:
    mine, other = features(materialized(ours), ALL, ASKED), features(materialized(theirs), ALL, ASKED)
    assert mine == other
    assert mine["text"] == ["schön 3", "schön 19", "schön 0", None, "schön 3"] and mine["vector"][0] == [3.0, 1.5]
    protos = [repo.store.get_online_features(features=ALL, entity_rows=ASKED).proto for repo in (ours, theirs)]
    assert str(protos[0].results) == str(protos[1].results)


def test_some_features_only(ours: Repo) -> None:
    store = materialized(ours)
    assert features(store, ["stats:i32", "stats:text"], ASKED[:2]) == {
        "driver_id": [3, 19],
        "i32": [-2, 14],
        "text": ["schön 3", "schön 19"],
    }


def test_later_rows_replace_earlier_ones(ours: Repo, theirs: Repo) -> None:
    answers = []
    for repo in (ours, theirs):
        store = materialized(repo)
        rows = driver_rows(5, shift=2)
        rows.loc[len(rows)] = {**rows.loc[4].to_dict(), "i32": 1000, "text": None, "vector": None, "f64": None}
        store.write_to_online_store("stats", rows)
        answers.append(features(store, ALL, [{"driver_id": n} for n in range(8)]))
    assert answers[0]["i32"] == [-3, -2, -1, 0, 1000, 0, 1, 2]
    assert answers[0]["text"][4] is None and answers[0]["vector"][4] in (None, [])
    # Feast's own store keeps an empty list where none was given.
    assert {k: v for k, v in answers[0].items() if k != "vector"} == {
        k: v for k, v in answers[1].items() if k != "vector"
    }


def test_several_entities_and_none(ours: Repo, theirs: Repo) -> None:
    for repo in (ours, theirs):
        pairs = pd.DataFrame(
            {
                "driver_id": np.array([1, 1, 2]),
                "shop_name": ["a", "b", "a"],
                "event_timestamp": [NOW - timedelta(minutes=5)] * 3,
                "trips": np.array([10, 20, 30]),
            }
        )
        by_pair = feast.FeatureView(
            name="by_pair",
            entities=[SHOP, DRIVER],
            schema=[
                feast.Field(name="trips", dtype=ft.Int64),
                feast.Field(name="driver_id", dtype=ft.Int64),
                feast.Field(name="shop_name", dtype=ft.String),
            ],
            source=repo.source("by_pair", pairs),
        )
        total = pd.DataFrame({"event_timestamp": [NOW - timedelta(minutes=5)], "everything": np.array([60])})
        alone = feast.FeatureView(
            name="alone",
            entities=[],
            schema=[feast.Field(name="everything", dtype=ft.Int64)],
            source=repo.source("alone", total),
        )
        repo.store.apply([DRIVER, SHOP, by_pair, alone])
        repo.store.materialize(NOW - timedelta(days=1), NOW + timedelta(minutes=1))
    asked = [{"driver_id": 1, "shop_name": "b"}, {"driver_id": 2, "shop_name": "b"}, {"shop_name": "a", "driver_id": 2}]
    names = ["by_pair:trips", "alone:everything"]
    mine = features(ours.store, names, asked)
    assert mine == features(theirs.store, names, asked)
    assert mine["trips"] == [20, None, 30] and mine["everything"] == [60, 60, 60]


def test_awaited(ours: Repo) -> None:
    store = materialized(ours)
    pushed = feast.PushSource(name="stats_push", batch_source=store.get_feature_view("stats").batch_source)
    view = stats(ours)
    view.stream_source, view.batch_source = pushed, pushed.batch_source
    store.apply([DRIVER, view])

    async def run() -> dict[str, Any]:
        await store.initialize()
        try:
            await store.push_async("stats_push", driver_rows(1, shift=9))
            found = await store.get_online_features_async(features=ALL, entity_rows=ASKED)
            return dict(found.to_dict())
        finally:
            await store.close()

    found = asyncio.run(run())
    assert found == features(ours.open(), ALL, ASKED) and found["i32"] == [-2, 14, 4, None, -2]


def test_the_methods_themselves(ours: Repo) -> None:
    store = materialized(ours)
    view, config = store.get_feature_view("stats"), store.config
    online = store._get_provider().online_store
    assert type(online).__name__ == "HeadwaterOnlineStore" and online.async_supported.read
    key = EntityKey(join_keys=["driver_id"], entity_values=[Value(int64_val=500)])
    when = datetime(2026, 1, 2, 3, 4, 5)
    seen: list[int] = []
    rows = [
        (key, {"i32": Value(int32_val=1), "text": Value()}, when - timedelta(days=1), None),
        (key, {"i32": Value(int32_val=2)}, when, when),
    ]
    online.online_write_batch(config, view, rows, seen.append)
    assert seen == [2]
    other = EntityKey(join_keys=["driver_id"], entity_values=[Value(int64_val=501)])
    found = online.online_read(config, view, [key, other, key], ["i32", "text", "vector"])
    assert found[1] == (None, None) and found[0] == found[2]
    time, values = found[0]
    assert time == when.replace(tzinfo=UTC) and values == {
        "i32": Value(int32_val=2),
        "text": Value(),
        "vector": Value(),
    }
    assert set(online.online_read(config, view, [key])[0][1]) == set(KINDS)
    assert asyncio.run(online.online_read_async(config, view, [key], ["i32"])) == [(time, {"i32": Value(int32_val=2)})]
    with pytest.raises(SchemaError, match=r"E1770.*`i32`"):
        online.online_write_batch(config, view, [(key, {"i32": Value(string_val="x")}, when, None)], None)
    online.online_write_batch(config, view, [], None)
    assert online.online_read(config, view, []) == []


def test_a_view_that_has_changed_is_refused_unless_its_rows_may_go(ours: Repo) -> None:
    store = materialized(ours)
    store.apply([DRIVER, stats(ours)])  # the same again
    assert features(store, ["stats:i32"], ASKED[:1])["i32"] == [-2]
    with pytest.raises(SchemaError, match=r"E1771.*removed words") as caught:
        store.apply([DRIVER, stats(ours, without=("words",))])
    assert caught.value.hint is not None and "on_schema_change: recreate" in caught.value.hint
    again = ours.open(on_schema_change="recreate")
    again.apply([DRIVER, stats(ours, without=("words",))])
    assert features(again, ["stats:i32"], ASKED[:1])["i32"] == [None]
    again.materialize(NOW - timedelta(days=1), NOW + timedelta(minutes=1))
    assert features(again, ["stats:i32"], ASKED[:1])["i32"] == [-2]


def test_views_that_are_deleted_and_teardown(ours: Repo) -> None:
    store = materialized(ours)
    backing = store._get_provider().online_store._backing(store.config)
    table = f"{ours.project}.stats"
    assert backing.definition(table) is not None
    store.apply([], objects_to_delete=[store.get_feature_view("stats")], partial=False)
    assert backing.definition(table) is None
    store = materialized(ours)
    store.teardown()
    assert ours.open()._get_provider().online_store._backing(ours.open().config).definition(table) is None


def test_clients_read_what_feast_has_written(server: RunningServer, tmp_path: Path) -> None:
    repo = Repo(tmp_path, {"type": OURS, "url": server.url}, "shared")
    materialized(repo)
    with hw.Client(server.url) as client:
        answer = client.fetch("shared.stats", [3, 77], ["f32", "vector", "flag"], event_time=True)
        assert answer["flag"].to_pylist() == [False, None] and answer.to_numpy(["vector"]).dtype == np.float32
        np.testing.assert_array_equal(answer.to_numpy(["f32"]), np.array([[1.0], [np.nan]], np.float32))
        assert answer.event_time.to_pylist() == [NOW - timedelta(minutes=57), None]
    repo.store.teardown()


@pytest.mark.parametrize(
    "online", [{}, {"url": "http://127.0.0.1:1", "path": "x"}, {"url": "http://127.0.0.1:1", "tokn": "x"}]
)
def test_configurations_that_are_wrong(online: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"either url|tokn"):
        Repo(tmp_path, {"type": OURS, **online}, "shop")
