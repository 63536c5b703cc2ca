"""with_columns(name=function)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.timeseries.relation_cases import bag_of, everywhere, relation

from headwater.base.errors import InputError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.operators.computed import Computed
from headwater.timeseries.operators.values import Values


@pytest.mark.parametrize("seed", range(4))
def test_functions_see_the_rows_as_they_were(seed: int) -> None:
    table = relation(seed)
    node = (
        RelationalMethods(Values(table))
        .with_columns(
            n=lambda t: pc.add(t["n"], pa.scalar(1, pa.int32())), m=lambda t: pc.add(t["n"], pa.scalar(2, pa.int32()))
        )
        .plan
    )
    assert node.schema.field("m").type == pa.int32()
    expected = [
        row | {"n": None if row["n"] is None else row["n"] + 1, "m": None if row["n"] is None else row["n"] + 2}
        for row in table.to_pylist()
    ]
    assert everywhere(node, seed) == bag_of(expected)


def test_polars_and_pandas() -> None:
    table = pa.table({"v": [1, 2]})
    for batch, function in (("polars", lambda t: t["v"] * 2), ("pandas", lambda t: t["v"] * 2)):
        node = RelationalMethods(Values(table)).with_columns(w=function, batch=batch).plan
        assert isinstance(node, Computed)
        assert node.kernel()(table).to_pydict() == {"v": [1, 2], "w": [2, 4]}


def test_a_type_can_be_given() -> None:
    def picky(batch: Any) -> Any:
        assert batch.num_rows
        return [1.0] * batch.num_rows

    stream = RelationalMethods(Values(pa.table({"v": [1]})))
    with pytest.raises(InputError, match="its type as well"):
        stream.with_columns(w=picky)
    with pytest.raises(InputError, match="its type as well"):
        stream.with_columns(w=lambda t: [None] * t.num_rows)
    node = stream.with_columns(w=(picky, pa.float32())).plan
    assert isinstance(node, Computed)
    assert node.schema.field("w").type == pa.float32()
    assert node.kernel()(pa.table({"v": [5]})).to_pylist() == [{"v": 5, "w": 1.0}]


def test_a_value_for_each_row() -> None:
    node = RelationalMethods(Values(pa.table({"v": [1]}))).with_columns(w=(lambda t: [1], pa.int64())).plan
    assert isinstance(node, Computed)
    with pytest.raises(InputError, match="one value for each of the 2 rows"):
        node.kernel()(pa.table({"v": [1, 2]}))
