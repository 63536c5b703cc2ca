"""Each kind of field, every type as a column that is returned, and the types that cannot be indexed, refused by name."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.base.errors import InputError, SearchQueryError
from headwater.lakehouse import Lake
from headwater.search import compiling
from headwater.search.index import SearchIndex

_EVERY_TYPE: dict[str, tuple[pa.DataType, Any]] = {
    "tiny": (pa.int8(), -128),
    "small": (pa.int16(), 32_767),
    "whole": (pa.int32(), -(2**31)),
    "long": (pa.int64(), 2**63 - 1),
    "single": (pa.float32(), 0.5),
    "double": (pa.float64(), -1e300),
    "money": (pa.decimal128(38, 9), Decimal("12345678901234567890.123456789")),
    "truth": (pa.bool_(), True),
    "word": (pa.string(), "Zoë 🙂"),
    "bytes": (pa.binary(), b"\x00\xff"),
    "day": (pa.date32(), date(1, 1, 1)),
    "moment": (pa.timestamp("us", "UTC"), datetime.fromisoformat("2024-01-01T00:00:00.000001+00:00")),
    "clock": (pa.timestamp("us"), datetime.fromisoformat("1969-12-31T23:59:59.999999")),
    "list": (pa.list_(pa.list_(pa.int32())), [[1, None], None, []]),
    "map": (pa.map_(pa.string(), pa.struct([("x", pa.decimal128(5, 2))])), [("k", {"x": Decimal("1.50")})]),
    "struct": (pa.struct([("a", pa.list_(pa.date32())), ("b", pa.struct([("c", pa.binary())]))]), {"a": [date(2024, 2, 29)], "b": {"c": b"z"}}),
}  # fmt: skip


def ids(index: SearchIndex, query: str, **options: Any) -> list[int]:
    return sorted(row["id"] for row in index.search(query, columns=["id"], k=None, **options))


def test_every_type_can_be_returned(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), *((name, dtype) for name, (dtype, _) in _EVERY_TYPE.items())])
    full = {"id": 1, **{name: value for name, (_, value) in _EVERY_TYPE.items()}}
    lake.write("t", pa.Table.from_pylist([full, {"id": 2}], schema))
    for hot in ((), list(_EVERY_TYPE)):
        index = lake.index(f"ix{len(hot)}", "t", text="word", numeric="id", hot=hot, refresh=True)
        for query in ("zoë", "id:2", "*"):
            found = index.search(query, order_by="id", k=None).to_arrow()
            wanted = (
                lake.table("t")
                .to_arrow()
                .filter(pa.compute.is_in(lake.table("t").to_arrow()["id"], found["id"].combine_chunks()))
            )
            assert found.sort_by("id").to_pylist() == wanted.sort_by("id").to_pylist()
            assert [f.type for f in found.schema] == [f.type for f in wanted.schema]
        some = index.search("*", columns=list(_EVERY_TYPE), k=None, order_by="id").to_pylist()
        assert some == [{name: full[name] for name in _EVERY_TYPE}, dict.fromkeys(_EVERY_TYPE)]


def test_every_column_of_a_natural_kind_is_indexed_by_itself(lake: Lake) -> None:
    schema = pa.schema([(name, dtype) for name, (dtype, _) in _EVERY_TYPE.items()])
    lake.write("t", pa.Table.from_pylist([{name: value for name, (_, value) in _EVERY_TYPE.items()}], schema))
    index = lake.index("ix", "t", refresh=True)
    assert index.fields == {
        "tiny": "integer", "small": "integer", "whole": "integer", "long": "integer", "single": "float", "double": "float",
        "money": "float", "truth": "boolean", "word": "text", "day": "date", "moment": "timestamp", "clock": "timestamp",
    }  # fmt: skip
    for query in ("tiny:-128", "long:9223372036854775807", "double:-1e300", "truth:true", "word:zoë", "day:0001-01-01",
                  'moment:"2024-01-01T00:00:00.000001Z"', 'clock:"1969-12-31T23:59:59.999999"', "single:0.5"):  # fmt: skip
        assert index.count(query) == 1, query
    assert index.count('moment:"2024-01-01T00:00:00Z"') == 0, "microseconds are kept"


def test_types_that_do_not_fit_are_refused_by_name(lake: Lake) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("word", pa.string()), ("list", pa.list_(pa.int32())), ("bytes", pa.binary())]
    )
    lake.write("t", schema.empty_table())
    for kind, column in (
        ("text", "id"),
        ("numeric", "word"),
        ("ip", "id"),
        ("binary", "word"),
        ("keyword", "list"),
        ("json", "id"),
    ):
        asked: dict[str, Any] = {kind: column}
        with pytest.raises(InputError, match=column) as caught:
            lake.index("ix", "t", **asked)
        assert caught.value.hint or "columns of another type" in str(caught.value)
    with pytest.raises(InputError):
        lake.index("ix", "t", text="nosuch")


def test_keywords_are_whole_values(lake: Lake) -> None:
    values = ["ann", "Ann", "", None, "a b", "a*b", "w" * 70_000]
    lake.write("t", pa.table({"id": range(len(values)), "k": values}))
    index = lake.index("ix", "t", keyword="k", refresh=True)
    assert ids(index, "k:ann") == [0]
    assert ids(index, 'k:"a b"') == [4] and ids(index, r"k:a\*b") == [5] and ids(index, "k:a*") == [0, 4, 5]
    assert ids(index, "k:*") == [0, 1, 2, 4, 5, 6] and ids(index, 'k:""') == [2]
    wide = "w" * 70_000
    assert [r["id"] for r in index.filter(f"k = '{wide}'").read_all().to_pylist()] == [6], "longer than a term can be"


def test_not_a_number_is_one_value_and_the_largest(lake: Lake) -> None:
    negative = np.array([0xFFF8000000000000], np.uint64).view(np.float64)[0]
    values = [negative, float("nan"), 1.0, -0.0, 0.0, float("inf"), float("-inf"), None, *[2.0] * 20]
    lake.write("t", pa.table({"id": range(len(values)), "x": pa.array(values, pa.float64())}))
    index = lake.index("ix", "t", numeric="x", refresh=True)
    assert "index" in index.explain_filter("x > 5")
    assert sorted(index.filter("x > 5").read_all()["id"].to_pylist()) == [0, 1, 5]
    assert ids(index, "x:>5") == [0, 1, 5] and ids(index, "x:0") == [3, 4] and ids(index, "x:-0.0") == [3, 4]
    order = [row["id"] for row in index.search("*", columns=["id"], order_by="x", descending=True, k=3)]
    assert sorted(order[:2]) == [0, 1] and order[2] == 5


def test_addresses_and_networks(lake: Lake) -> None:
    lake.write("t", pa.table({"id": range(5), "h": ["10.0.0.1", "10.0.1.1", "::1", "no address", None]}))
    index = lake.index("ix", "t", ip="h", refresh=True)
    assert ids(index, "h:10.0.0.1") == [0] and ids(index, 'h:"10.0.0.0/16"') == [0, 1] and ids(index, 'h:"::1"') == [2]
    assert ids(index, "h:[10.0.0.0 TO 10.0.0.255]") == [0] and ids(index, "h:*") == [0, 1, 2]
    with pytest.raises(SearchQueryError, match="no value"):
        ids(index, "h:nonsense")


def test_bytes(lake: Lake) -> None:
    lake.write("t", pa.table({"id": range(4), "b": pa.array([b"\x00\xff", b"", None, b"r" * 70_000], pa.binary())}))
    index = lake.index("ix", "t", binary="b", refresh=True)
    assert ids(index, "b:00ff") == [0] and ids(index, 'b:""') == [1] and ids(index, "b:*") == [0, 1, 3]
    assert index.filter("b = X'00ff'").read_all()["id"].to_pylist() == [0]


def test_json_of_every_shape(lake: Lake) -> None:
    deep: Any = {"x": "deep"}
    for _ in range(900):
        deep = {"a": deep}
    texts = [
        '{"a": {"b": "Card Lost"}, "n": 3}', '["red", "blue", null]', "7", '"alone"', "null", "no JSON", '{"n": NaN}',
        '{"n": 123456789012345678901234567890}', '{"s": "\\ud800"}', '{"k\\u0000": "v"}', '{"": 1}', "[" * 100_000,
        json.dumps(deep), '{"at": "2024-01-01T00:00:00Z"}', '{"n": 2.5}', '{"n": -9223372036854775809}',
        '{"n": 18446744073709551615}', '{"s": "' + "x" * 70_000 + '"}', None,
    ]  # fmt: skip
    lake.write("t", pa.table({"id": range(len(texts)), "j": texts}))
    index = lake.index("ix", "t", json="j", refresh=True)
    assert (
        ids(index, "j.a.b:card") == [0] and ids(index, 'j.a.b:"card lost"') == [0] and ids(index, "j.a.b:crad~1") == [0]
    )
    assert ids(index, "j.n:3") == [0] and ids(index, "j.n:[2 TO 3.5]") == [0, 14] and ids(index, "j.n:>2.9") == [0, 16]
    assert ids(index, "j:red") == [1] and ids(index, "j:7") == [2] and ids(index, "j:alone") == [3]
    assert ids(index, "j.n:18446744073709551615") == [16] and ids(index, 'j.at:"2024-01-01T00:00:00Z"') == [13]
    assert ids(index, "j.a:*")[0] == 0 and 0 in ids(index, "j.n:*") and 13 not in ids(index, "j.n:*")
    for query in ("j.a.b:ca*", "j.a.b:/c.*/", "j.n:[true TO false]", 'j.a.b:"card lo"*'):
        with pytest.raises(SearchQueryError, match=r"of kind json|no value"):
            ids(index, query)
    assert index.verify().equal


def test_values_without_a_word_are_there_all_the_same(lake: Lake) -> None:
    deep: Any = {"x": ""}
    for _ in range(200):
        deep = {"a": deep}
    texts = [
        '{"a": "\\ud83d\\ude42"}', '{"a": ""}', '{"a": {"b": "..."}}', '{"a": null}', '{"a": {}}', '{"a": []}', '{"a": [null, {"b": " "}]}',
        '{"a.b": 1}', '{"a": ["", 1]}', "{}", json.dumps(deep), '""', '{"' + "k" * 70_000 + '": "!"}', '{"a": {"": false}}',
    ]  # fmt: skip
    lake.write("t", pa.table({"id": range(len(texts)), "j": texts}))
    index = lake.index("ix", "t", json="j", refresh=True)
    assert ids(index, "j.a:*") == [0, 1, 2, 6, 8, 10, 13] and ids(index, "_exists_:j.a.b") == [2, 6]
    assert ids(index, r"j.`a.b`:*") == [7] and ids(index, "j._:*") == [11] and ids(index, "j.b:*") == []
    assert ids(index, "j.a.a.a.a.a:*") == [10] and ids(index, "NOT j.a:*") == [3, 4, 5, 7, 9, 11, 12]
    assert index.verify().equal


def test_structs_lists_and_maps_are_found_by_their_paths(lake: Lake) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", _EVERY_TYPE["struct"][0]),
            ("m", _EVERY_TYPE["map"][0]),
            ("l", _EVERY_TYPE["list"][0]),
        ]
    )
    row = {"id": 1, "s": _EVERY_TYPE["struct"][1], "m": _EVERY_TYPE["map"][1], "l": [[1, None], [5]]}
    lake.write("t", pa.Table.from_pylist([row, {"id": 2}], schema))
    index = lake.index("ix", "t", json=["s", "m", "l"], refresh=True)
    assert ids(index, 's.a:"2024-02-29"') == [1] and ids(index, "s.b.c:7a") == [1]
    assert ids(index, 'm.k.x:"1.50"') == [1] and ids(index, "l:5") == [1] and ids(index, "s:*") == [1]


def test_words_left_out_leave_gaps_and_grams_are_all_asked_for(lake: Lake) -> None:
    lake.write("t", pa.table({"id": [1, 2], "a": ["the card was lost", "card lost"]}))
    index = lake.index("stop", "t", text="a", analyzer="simple | lowercase | stopwords(english)", refresh=True)
    assert (
        ids(index, '"the card was lost"') == [1]
        and ids(index, '"card lost"') == [2]
        and ids(index, '"card lost"~1') == [1, 2]
    )
    grams = lake.index("grams", "t", text="a", analyzer="ngram(2, 3) | lowercase", refresh=True)
    assert ids(grams, "lost") == [1, 2] and ids(grams, "was") == [1] and ids(grams, "wasp") == []


def test_a_phrase_with_a_prefix_finds_every_ending(lake: Lake) -> None:
    lake.write("t", pa.table({"id": range(300), "a": [f"card lo{n:03}" for n in range(300)]}))
    index = lake.index("ix", "t", text="a", refresh=True)
    assert len(ids(index, '"card lo"*')) == 300


def test_blanks_that_are_no_blanks_to_the_tokenizer(lake: Lake) -> None:
    text = ("a" * 20_000 + "\u00a0") * 4
    lake.write("t", pa.table({"id": range(20), "a": [text, *["b"] * 19]}))
    index = lake.index("ix", "t", text="a", analyzer="whitespace", refresh=True)
    assert index.filter("contains(a, 'aaa')", columns=["id"]).read_all()["id"].to_pylist() == [0]


def test_half_a_letter_of_a_gram(lake: Lake) -> None:
    lake.write("t", pa.table({"id": range(20), "a": ["abİ", *["b"] * 19]}))
    index = lake.index("ix", "t", text="a", substring="a", refresh=True)
    assert index.filter("a ILIKE '%abi%'").read_all()["id"].to_pylist() == [0]


def test_an_index_made_again_has_the_new_fields(lake: Lake) -> None:
    lake.write("t", pa.table({"id": [1], "a": ["one"], "b": ["two"]}))
    index = lake.index("ix", "t", text="a", refresh=True)
    assert ids(index, "one") == [1]
    index.drop()
    again = lake.index("ix", "t", text="b", refresh=True)
    assert ids(again, "one") == [] and ids(again, "two") == [1]


def test_more_rows_than_there_are(lake: Lake) -> None:
    lake.write("t", pa.table({"id": [1, 2], "a": ["one", "one"]}))
    index = lake.index("ix", "t", text="a", numeric="id", refresh=True)
    assert len(index.search("one", k=10**15)) == 2 and len(index.search("one", k=5, offset=10**15)) == 0
    assert len(index.search("one", k=10**15, order_by="id", offset=1)) == 1


@pytest.mark.parametrize("most", [20_000, -1])
def test_patterns_with_every_special_character(most: int, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the lists of terms, and by the library's regular expressions, which take over where very many terms match."""
    monkeypatch.setattr(compiling, "_MANY_TERMS", most)
    values = [
        "a*b",
        "a.b",
        "a+b",
        "(x)",
        "[y]",
        "{z}",
        "^c$",
        "d|e",
        "f\\g",
        "h#i",
        "j&k",
        "l-m",
        "n~o",
        "p/q",
        "r s",
        "t\nu",
        "ü日",
    ]
    lake.write("t", pa.table({"id": range(len(values)), "k": values}))
    index = lake.index("ix", "t", keyword="k", refresh=True)
    for number, value in enumerate(values):
        shown = "".join("\\" + c for c in value)
        for query in (f"k:{shown}*", f"k:*{shown}", f"k:*{shown}*", f"k:?{shown[2:]}"):
            assert ids(index, query) == [number], query
        assert number in ids(index, "k:" + "?" * len(value))
