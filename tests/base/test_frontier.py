"""Frontiers are a lattice, and their text round-trips."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InputError
from headwater.base.frontier import Frontier, TableIdentity

names = st.sampled_from(["orders", "cards", "sales.orders", "a b", "`", "``", "x@1", "", "été", "a\nb"]) | st.text(
    max_size=5
)
frontiers = st.dictionaries(names, st.integers(0, 5) | st.just(2**63 - 1), max_size=5).map(Frontier)


@given(frontiers, frontiers, frontiers)
def test_it_is_a_distributive_lattice(a: Frontier, b: Frontier, c: Frontier) -> None:
    assert a | a == a == a & a
    assert a | b == b | a
    assert a & b == b & a
    assert (a | b) | c == a | (b | c)
    assert (a & b) & c == a & (b & c)
    assert a | (a & b) == a == a & (a | b)
    assert a & (b | c) == (a & b) | (a & c)


@given(frontiers, frontiers, frontiers)
def test_the_order_is_partial_and_fits_the_lattice(a: Frontier, b: Frontier, c: Frontier) -> None:
    assert a <= a
    assert (a <= b and b <= a) == (a == b)
    assert not (a <= b and b <= c) or a <= c
    assert (a <= b) == (a | b == b) == (a & b == a)
    assert (a < b) == (a <= b and a != b) == (b > a)
    assert (a >= b) == (b <= a)
    assert a.comparable(b) == (a <= b or b <= a)
    assert Frontier() <= a
    assert a & b <= a <= a | b


@given(frontiers)
def test_text_json_and_pickle_round_trip(a: Frontier) -> None:
    assert Frontier.parse(str(a)) == a
    assert Frontier.from_json(a.to_json()) == a
    assert pickle.loads(pickle.dumps(a)) == a
    assert hash(Frontier(dict(reversed(list(a.items()))))) == hash(a)
    assert eval(repr(a)[len("Frontier(") : -1]) == str(a)


@given(frontiers, names, st.integers(0, 5))
def test_advancing_goes_up_or_is_refused(a: Frontier, table: str, version: int) -> None:
    if version >= a.get(table, -1):
        after = a.advance(table, version)
        assert a <= after
        assert after[table] == version
        assert after == a | Frontier({table: version})
    else:
        with pytest.raises(InputError, match="E1009"):
            a.advance(table, version)


def test_how_it_prints() -> None:
    frontier = Frontier({"orders": 42, "cards": 17, "my table": 1, "a`b": 0, "s3/x-y.z": 2})
    assert str(frontier) == "`a``b`@0 cards@17 `my table`@1 orders@42 s3/x-y.z@2"
    assert repr(Frontier(orders=1)) == "Frontier('orders@1')"
    assert str(Frontier()) == ""
    assert "<td>&lt;b&gt;</td><td>3</td>" in Frontier({"<b>": 3})._repr_html_()


def test_it_is_a_map() -> None:
    frontier = Frontier(orders=42, cards=17)
    assert (list(frontier), len(frontier), frontier["cards"], frontier.get("x")) == (["cards", "orders"], 2, 17, None)
    assert dict(frontier) == {"cards": 17, "orders": 42}
    assert frontier.restrict(["cards"]) == Frontier(cards=17)
    assert frontier != {"cards": 17, "orders": 42}
    assert not Frontier()


def test_it_does_not_compare_with_other_things() -> None:
    with pytest.raises(TypeError):
        _ = Frontier() < 3
    with pytest.raises(TypeError):
        _ = Frontier() >= 3
    with pytest.raises(TypeError):
        _ = Frontier() | 3
    with pytest.raises(TypeError):
        _ = Frontier() & 3


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "orders@",
        "@4",
        "orders@x",
        "orders@-1",
        "orders@1,cards@2",
        "a@1 a@2",
        "`a@1",
        "a@1b",
        "a b@1",
        "orders@99999999999999999999",
        "orders@9223372036854775808",
        "orders@١",
    ],
)
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Frontier.parse(text)
    assert caught.value.code == "E1009"
    assert caught.value.hint == "write it like `orders@42 cards@17`"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": -1}', '{"a": "1"}', '{"a": 1.0}', '{"a": true}', '{"a": null}'])
def test_bad_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="E1009"):
        Frontier.from_json(text)


@pytest.mark.parametrize("versions", [{"a": -1}, {"a": 1.5}, {"a": True}, {1: 1}, {"a": 2**63}])
def test_bad_versions_are_refused(versions: dict[str, int]) -> None:
    with pytest.raises(InputError, match="E1009"):
        Frontier(versions)


ORDERS, AGAIN = TableIdentity("a1", {"id": "col-1"}), TableIdentity("b2")


def test_entries_of_different_tables_are_neither_equal_nor_ordered() -> None:
    old, new = Frontier(orders=3).identified({"orders": ORDERS}), Frontier(orders=5).identified({"orders": AGAIN})
    assert old != new
    assert not old <= new
    assert not new <= old
    assert not old.comparable(new)
    assert old.replaced_in(new) == ["orders"]
    assert old & new == Frontier()
    with pytest.raises(InputError, match="not the same table"):
        old.join(new)
    assert Frontier(orders=3).identified({"orders": ORDERS}) != Frontier(orders=3).identified({"orders": AGAIN})


def test_an_entry_without_identity_is_about_the_table_at_hand() -> None:
    known = Frontier(orders=3, cards=1).identified({"orders": ORDERS})
    assert known == Frontier(orders=3, cards=1)
    assert hash(known) == hash(Frontier(orders=3, cards=1))
    assert known < Frontier(orders=4, cards=1)
    assert (known | Frontier(orders=4)).identities == {"orders": ORDERS}
    assert (Frontier(orders=4) & known).identities == {"orders": ORDERS}


def test_identities_stay_with_their_entries() -> None:
    known = Frontier(orders=3, cards=1).identified({"orders": ORDERS, "shops": AGAIN})
    assert known.identities == {"orders": ORDERS}
    assert known.advance("orders", 9).identities == {"orders": ORDERS}
    assert known.restrict(["cards"]).identities == {}
    assert pickle.loads(pickle.dumps(known)).identities == known.identities
    assert Frontier(known).identities == known.identities
    later = Frontier(orders=7).identified({"orders": TableIdentity("a1", {"id": "col-9"})})
    assert (known | later).identities["orders"].columns == {"id": "col-9"}
    assert (later | known).identities["orders"].columns == {"id": "col-9"}
    assert (later & known).identities["orders"].columns == {"id": "col-1"}
    assert str(known) == "cards@1 orders@3"
