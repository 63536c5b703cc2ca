"""transform: a function on each batch."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.timeseries.relation_cases import bag_of, everywhere, relation

from headwater.base.errors import InputError, NotFoundError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.operators.transform import Transform
from headwater.timeseries.operators.values import Values

SCHEMA = {"n": pa.int64(), "m": pa.int64()}


def doubled(batch: pa.Table) -> pa.Table:
    assert batch.column_names == ["n"]
    return pa.table({"m": pc.multiply(batch["n"], 2), "n": batch["n"]}).filter(pc.greater(batch["n"], -1))


def doubled_polars(batch: Any) -> Any:
    import polars

    return batch.filter(polars.col("n") > -1).with_columns(m=polars.col("n") * 2)


def doubled_pandas(batch: Any) -> Any:
    kept = batch[batch["n"] > -1].astype("int64")
    return kept.assign(m=kept["n"] * 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("batch", "function"), [("arrow", doubled), ("polars", doubled_polars), ("pandas", doubled_pandas)]
)
def test_rows_are_what_the_function_returns(batch: str, function: Any, seed: int) -> None:
    table = relation(seed)
    node = RelationalMethods(Values(table)).transform(function, schema=SCHEMA, columns="n", batch=batch).plan
    expected = [{"n": n, "m": 2 * n} for n in table["n"].to_pylist() if n is not None and n > -1]
    assert everywhere(node, seed) == bag_of(expected)


def test_kernels_travel() -> None:
    node = RelationalMethods(Values(pa.table({"n": [1]}))).transform(doubled, schema=SCHEMA).plan
    assert isinstance(node, Transform)
    kernel = pickle.loads(pickle.dumps(node.kernel()))
    assert kernel(pa.table({"n": [1]})).to_pylist() == [{"n": 1, "m": 2}]


def test_what_it_returns_is_checked() -> None:
    table = pa.table({"n": [1]})
    stream = RelationalMethods(Values(table))

    def run(function: Any) -> pa.Table:
        node = stream.transform(function, schema={"n": pa.int64()}).plan
        assert isinstance(node, Transform)
        return node.kernel()(table)

    assert run(lambda t: {"n": [7.0]}).to_pylist() == [{"n": 7}]
    with pytest.raises(InputError, match="announced"):
        run(lambda t: {"m": [1]})
    with pytest.raises(InputError, match="is int64, but the data holds string"):
        run(lambda t: {"n": ["x"]})
    with pytest.raises(InputError, match="is int64, but the data holds double"):
        run(lambda t: {"n": [1.5]})
    with pytest.raises(InputError, match="cannot read rows"):
        run(lambda t: 5)


def test_mistakes() -> None:
    stream = RelationalMethods(Values(pa.table({"n": [1]})))
    with pytest.raises(InputError, match="arrow"):
        stream.transform(doubled, schema=SCHEMA, batch="numpy")
    with pytest.raises(InputError, match="schema"):
        stream.transform(doubled, schema={"n": int})
    with pytest.raises(NotFoundError):
        stream.transform(doubled, schema=SCHEMA, columns=["x"])
