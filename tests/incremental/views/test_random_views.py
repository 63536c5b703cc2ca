"""Random queries as views of a lake: what is published equals a recomputation, whatever the query is made of.

The queries are those of `headwater.testing.views`; here they go the whole way, from SQL through a stored definition, columns that are read, state
in files and a Delta table, with restarts. HEADWATER_TEST_SEEDS makes it longer.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.incremental.views import live as lives
from headwater.testing.views import DRAWS, SCHEMAS, random_view

SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "2")) * 4


def rows_of(rng: random.Random, name: str, count: int, order: dict[str, list[str]]) -> pa.Table:
    rows = [DRAWS[name](rng) for _ in range(count)]
    names = SCHEMAS[name].names
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], SCHEMAS[name])
    return table.select(order[name])


def orders(rng: random.Random) -> dict[str, list[str]]:
    """The columns of each table in an order of this time: which one comes first has to mean nothing."""
    return {name: rng.sample(schema.names, len(schema)) for name, schema in SCHEMAS.items()}


@pytest.mark.long
def test_random_views_are_their_queries(tmp_path: Path) -> None:
    refused = 0
    rng = random.Random(0)
    for seed in range(SEEDS):
        if seed % 4 == 0:
            lake, order = hw.connect(tmp_path / str(seed)), orders(rng)
            for name in SCHEMAS:
                lake.write(name, rows_of(rng, name, 12, order))
        sql = random_view(1000 + seed)
        where = f"seed {seed}\n{sql}"
        try:
            view = lake.view(f"v{seed}", sql)
            view.refresh()
        except HeadwaterError as error:
            assert error.code in ("E3003", "E3004", "E1305", "E1205", "E1204"), f"{error}\n{where}"
            refused += 1
            continue
        assert view.verify().equal, f"{view.verify()}\n{where}"
        for step in range(3):
            for name in SCHEMAS:
                if rng.random() < 0.5:
                    lake.table(name).append(rows_of(rng, name, 3, order))
                else:
                    lake.table(name).delete(f"k = {rng.randint(0, 4)}")
            if step == 1:
                lives.forget(view._environment.root, view.name)
            report = view.refresh()
            assert report.mode != "full", f"{report}\n{where}"
            assert view.verify().equal, f"step {step}: {view.verify()}\n{where}"
        view.drop()
    assert refused < SEEDS // 2
