"""Change batches are Z-sets: laws, exactness and errors."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.change import ChangeBatch, as_table
from headwater.base.errors import ConstraintError, InputError, SchemaError, UnsupportedError
from headwater.testing import oracles, strategies
from headwater.testing.oracles import assert_same_rows

TOP, BOTTOM = 2**63 - 1, -(2**63)


def weights_of(change: ChangeBatch) -> Counter[object]:
    """The Z-set, summed up one row at a time."""
    sums: Counter[object] = Counter()
    keys = zip(*([oracles.same_value(v) for v in column] for column in change.rows.columns), strict=True)
    for key, weight in zip(keys, change.weights.tolist(), strict=True):
        sums[key] += weight
    return Counter({key: weight for key, weight in sums.items() if weight})


def batch(*pairs: tuple[int, int]) -> ChangeBatch:
    return ChangeBatch.from_table({"id": [p[0] for p in pairs], "_weight": [p[1] for p in pairs]})


@st.composite
def same_schema(draw: st.DrawFn, count: int = 2) -> list[ChangeBatch]:
    schema = draw(strategies.schemas(max_columns=2))
    tables = draw(strategies.tables(schema, min_rows=1, max_rows=8))
    changes = [draw(strategies.changes(schema, max_rows=6)) for _ in range(count - 1)]
    # Share rows between the batches, or they would seldom meet.
    return [ChangeBatch.from_rows(tables), *(c + ChangeBatch.from_rows(tables.slice(0, 2)) for c in changes)]


@pytest.mark.long
@settings(max_examples=2 * settings().max_examples)
@given(strategies.changes())
def test_consolidate_equals_counting(change: ChangeBatch) -> None:
    tidy = change.consolidate()
    assert weights_of(tidy) == weights_of(change)
    assert tidy.num_rows == len(weights_of(change))
    assert tidy.schema == change.schema
    assert tidy == change
    assert change.is_empty == (tidy.num_rows == 0)
    assert bool(change) != change.is_empty


@given(same_schema(count=3))
def test_the_group_laws(changes: list[ChangeBatch]) -> None:
    a, b, c = changes
    zero = ChangeBatch.empty(a.schema)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + zero == a == zero + a
    assert (a - a).is_empty
    assert -(a + b) == -a - b
    assert weights_of(a + b) == Counter({k: w for k, w in _sum(a, b).items() if w})
    assert (a == b) == (weights_of(a) == weights_of(b))


def _sum(a: ChangeBatch, b: ChangeBatch) -> Counter[object]:
    sums = weights_of(a)
    for key, weight in weights_of(b).items():
        sums[key] += weight
    return sums


@given(st.data())
def test_applying_a_difference_gives_the_new_table(data: st.DataObject) -> None:
    schema = data.draw(strategies.schemas(max_columns=3))
    old = data.draw(strategies.tables(schema))
    extra = data.draw(strategies.tables(schema, max_rows=5))
    kept = data.draw(st.integers(0, old.num_rows))
    new = pa.concat_tables([old.slice(0, kept), extra])
    change = ChangeBatch.diff(old, new)
    applied = change.apply_to(old)
    assert oracles.row_counts(applied) == oracles.row_counts(new)
    assert oracles.row_counts((-change).apply_to(new)) == oracles.row_counts(old)
    assert oracles.row_counts(change.inserted()) == oracles.row_counts(new) - oracles.row_counts(old)
    assert oracles.row_counts(change.deleted()) == oracles.row_counts(old) - oracles.row_counts(new)


@settings(max_examples=25, deadline=None)
@given(strategies.histories())
def test_a_history_replays(history: strategies.History) -> None:
    table = history.start
    total = ChangeBatch.empty(table.schema)
    for version, commit in enumerate(history.commits, start=1):
        table = commit.change.apply_to(table)
        total = total + commit.change
        assert_same_rows(table, history.state(version))
    assert_same_rows(total.apply_to(history.start), table)


def test_apply_keeps_order_and_takes_the_first_of_equal_rows() -> None:
    table = pa.table({"id": [3, 1, 2, 1, 1], "at": [0, 0, 0, 0, 0]})
    change = ChangeBatch.from_table({"id": [1, 9], "at": [0, 0], "_weight": [-2, 2]})
    assert change.apply_to(table)["id"].to_pylist() == [3, 2, 1, 9, 9]


def test_a_deletion_without_its_row_is_an_error_that_shows_it() -> None:
    with pytest.raises(ConstraintError, match=r"E2101.*1 row\(s\).*id=7") as caught:
        batch((7, -2), (1, 1)).apply_to(pa.table({"id": [7, 8]}))
    assert caught.value.hint is not None
    with pytest.raises(ConstraintError, match="E2101"):
        ChangeBatch.from_rows({"x": [-0.0]}, weight=-1).apply_to(pa.table({"x": [0.0]}))


def test_weights_that_do_not_fit_are_errors() -> None:
    for pairs in [((1, TOP), (1, 1)), ((1, BOTTOM), (1, -1)), ((1, TOP), (1, TOP), (1, TOP))]:
        with pytest.raises(ConstraintError, match="E2102"):
            batch(*pairs).consolidate()
    assert batch((1, TOP), (2, 5), (1, TOP), (1, -TOP)).consolidate().weights.tolist() == [TOP, 5]
    assert batch((1, BOTTOM), (1, TOP)).consolidate().weights.tolist() == [-1]
    assert batch((1, TOP), (1, BOTTOM), (1, 1)).is_empty
    assert batch((1, TOP), (1, TOP), (1, BOTTOM), (1, BOTTOM), (1, 2)).is_empty
    with pytest.raises(ConstraintError, match="E2102"):
        batch((1, BOTTOM)).negate()
    with pytest.raises(ConstraintError, match="E2102"):
        ChangeBatch.from_rows({"id": [1]}, weight=2**63)
    with pytest.raises(ConstraintError, match="E2102"):
        ChangeBatch.from_table({"id": [1], "_weight": np.array([2**63], dtype=np.uint64)})
    with pytest.raises(UnsupportedError, match="E3003"):
        batch((1, TOP)).inserted()
    with pytest.raises(UnsupportedError, match="E3003"):
        batch((1, BOTTOM)).deleted()


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([TOP, BOTTOM, 1, -1, 2**32, -(2**31), 2**62])), max_size=8)
)
def test_sums_of_large_weights_are_exact_or_refused(pairs: list[tuple[int, int]]) -> None:
    sums: Counter[int] = Counter()
    for key, weight in pairs:
        sums[key] += weight
    change = batch(*pairs) if pairs else ChangeBatch.empty(pa.schema([("id", pa.int64())]))
    if all(BOTTOM <= total <= TOP for total in sums.values()):
        tidy = change.consolidate()
        found = dict(zip(tidy.rows["id"].to_pylist(), tidy.weights.tolist(), strict=True))
        assert found == {key: total for key, total in sums.items() if total}
    else:
        with pytest.raises(ConstraintError, match="E2102"):
            change.consolidate()


def test_bad_input_is_refused() -> None:
    with pytest.raises(SchemaError, match="E1203"):
        ChangeBatch.from_table({"id": [1]})
    with pytest.raises(SchemaError, match="E1201"):
        ChangeBatch.from_table({"id": [1], "_weight": [1.5]})
    with pytest.raises(ConstraintError, match="E2001"):
        ChangeBatch.from_table({"id": [1], "_weight": pa.array([None], pa.int64())})
    with pytest.raises(InputError, match="E1001"):
        ChangeBatch.from_rows({"_weight": [1]})
    with pytest.raises(InputError, match="E1001"):
        ChangeBatch.from_rows({"id": [1]}, weight=True)
    with pytest.raises(InputError, match="E1006"):
        ChangeBatch.from_rows(object())
    with pytest.raises(SchemaError, match="E1201"):
        batch((1, 1)) + ChangeBatch.from_rows({"id": ["a"]})
    with pytest.raises(SchemaError, match="E1209"):
        batch((1, 1)) + ChangeBatch.from_rows({"id": [1], "more": [1]})
    with pytest.raises(SchemaError, match="E1203"):
        ChangeBatch.from_rows({"id": [1], "more": [1]}) + batch((1, 1))
    assert batch((1, 1)) != ChangeBatch.from_rows({"id": ["1"]})
    assert batch((1, 1)) != 5


def test_columns_meet_by_name_whatever_their_encoding() -> None:
    plain = pa.table({"k": ["a", None], "v": pa.array([[1], None], pa.list_(pa.int64()))})
    other = pa.table(
        {
            "v": pa.array([[1], None], pa.large_list(pa.int64())),
            "k": pa.array(["a", None]).dictionary_encode(),
        }
    )
    assert ChangeBatch.diff(plain, other).is_empty
    assert ChangeBatch.from_rows(plain) == ChangeBatch.from_rows(other)
    assert_same_rows(plain, other)
    strict = pa.table({"id": [1, 2]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    loose = pa.table({"id": pa.array([None], pa.int64())})
    both = ChangeBatch.from_rows(strict) + ChangeBatch.from_rows(loose)
    assert both.schema.field("id").nullable


def test_streams_in_and_out() -> None:
    polars = pytest.importorskip("polars")
    change = batch((1, 2), (2, -1))
    assert pa.table(change).schema.names == ["id", "_weight"]
    assert ChangeBatch.from_table(change.to_polars()) == change
    assert ChangeBatch.from_rows(polars.DataFrame({"id": [1, 1]})) == batch((1, 2))
    assert ChangeBatch.from_rows(pa.RecordBatch.from_pydict({"id": [1, 1]})) == batch((1, 2))
    assert ChangeBatch.from_rows(change.rows.to_reader()).num_rows == 2
    assert pickle.loads(pickle.dumps(change)) == change
    assert ChangeBatch.from_table({"_weight": np.array([2, -1], dtype=np.int8), "id": [1, 2]}) == change


def test_pandas_in_and_out() -> None:
    pandas = pytest.importorskip("pandas")
    change = batch((1, 2), (2, -1))
    assert change.to_pandas()["_weight"].tolist() == [2, -1]
    assert ChangeBatch.from_table(change.to_pandas()) == change
    assert as_table(pandas.DataFrame({"id": [1]}, index=[5])).schema.names == ["id"]


def test_how_it_looks() -> None:
    change = ChangeBatch.from_table({"name": ["<b>", "x"], "_weight": [1, -3]})
    assert repr(change) == "ChangeBatch(2 rows, +1 -3: name string)"
    assert repr(batch((1, TOP), (2, TOP))) == f"ChangeBatch(2 rows, +{2 * TOP} -0: id int64)"
    page = change._repr_html_()
    assert "<td>+1</td><td>&lt;b&gt;</td>" in page
    assert "<td>-3</td>" in page
    assert "… and 5 more" in ChangeBatch.from_rows({"id": list(range(25))})._repr_html_()
    assert len(change) == change.num_rows == 2


def test_a_change_of_nothing_leaves_the_table_itself() -> None:
    table = pa.table({"id": [1]})
    assert ChangeBatch.empty(table.schema).apply_to(table) is table
    assert batch((5, 1), (5, -1)).apply_to(table) is table


def test_the_readable_difference() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_same_rows([{"id": 1}] * 3, [{"id": 1}, {"id": 2}], where="orders")
    assert str(caught.value).splitlines() == [
        "orders: the rows differ: 1 missing, 2 too many (3 rows, 2 expected)",
        "  missing  1x {'id': 2}",
        "  too many 2x {'id': 1}",
    ]
    beyond = pa.array([2**62], type=pa.timestamp("us"))
    with pytest.raises(AssertionError, match="too many 1x"):
        assert_same_rows(pa.table({"t": beyond}), pa.table({"t": beyond.slice(0, 0)}))
