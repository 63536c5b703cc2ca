"""The picture of the guide shows the commits of a real table."""

from __future__ import annotations

import os
from pathlib import Path

from tests.serving.versions_picture import Commit, Layer, draw

import headwater as hw
from headwater.serving.store import OnlineStore

FILE = Path(__file__).parents[2] / "docs" / "images" / "versions.svg"
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"


def test_the_picture_is_that_of_a_table(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    spend = lake.write("spend", [{"id": i, "total": float(i)} for i in range(1_000)])
    features = lake.online("features", "spend", key="id", refresh=True)
    commits = [_seen(features.store, "built")]
    spend.update({"total": "0.5"}, where="id < 3")
    features.refresh()
    commits.append(_seen(features.store, "3 rows changed"))
    spend.delete("id = 7")
    features.refresh()
    commits.append(_seen(features.store, "1 row deleted"))
    assert features.compact()
    commits.append(_seen(features.store, "overlays taken in"))
    drawn = draw("versions of an online table", commits)
    if UPDATE:
        FILE.write_text(drawn)
    assert FILE.read_text() == drawn


def _seen(store: OnlineStore, why: str) -> Commit:
    """The newest commit, with the numbers of files in place of their names, which differ each time."""
    committed = store.log.newest()
    assert committed is not None
    record = store.record(committed)
    layers = []
    for layer in record.layers:
        rows, gone = layer.rows - layer.tombstones, layer.tombstones
        held = [f"{rows:,} row{'' if rows == 1 else 's'}"] if rows else []
        held += [f"{gone} key{'' if gone == 1 else 's'} deleted"] if gone else []
        is_overlay = layer is not record.layers[-1]
        text = f"{'overlay' if is_overlay else 'base'}: {', '.join(held)}"
        layers.append(Layer(layer.files[0].partition("-")[0], text, is_overlay))
    return Commit(committed.number, str(record.frontier), why, tuple(layers))
