"""Which column a name means."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError, NotFoundError
from headwater.sql.expressions import parse

_ORDERS = pa.schema(
    [
        ("Amount", pa.int32()),
        ("customer", pa.struct([("Name", pa.string()), ("address", pa.struct([("zip", pa.string())]))])),
        ("odd name", pa.int32()),
        ("date", pa.date32()),
        ("u", pa.uint16()),
    ]
)
_TWO = {
    "t": pa.schema([("id", pa.int64()), ("v", pa.int32())]),
    "s": pa.schema([("id", pa.int64()), ("w", pa.int32())]),
}


def test_case_does_not_matter_and_the_stored_name_is_used() -> None:
    expression = parse("AMOUNT > 1", schema=_ORDERS)
    assert expression.columns == {(None, "Amount")}
    assert expression.duckdb == '("Amount" > 1)'


def test_fields_of_structs() -> None:
    expression = parse("customer.name = 'x' and Customer.Address.ZIP is null", schema=_ORDERS)
    assert expression.columns == {(None, "customer")}
    assert "struct_extract(struct_extract(\"customer\", 'address'), 'zip')" in expression.duckdb


def test_backticks_and_words_that_look_like_keywords() -> None:
    assert parse("`odd name` = 1 and date > '2024-01-01'", schema=_ORDERS).columns == {
        (None, "odd name"),
        (None, "date"),
    }


def test_aliases_and_relations() -> None:
    expression = parse("T.id = s.ID and v > w", schema=_TWO)
    assert expression.columns == {("t", "id"), ("s", "id"), ("t", "v"), ("s", "w")}
    assert expression.duckdb == '(("t"."id" = "s"."id") AND ("t"."v" > "s"."w"))'
    assert (
        expression.duckdb_for({"t": "old", "s": 'ne"w'})
        == '(("old"."id" = "ne""w"."id") AND ("old"."v" > "ne""w"."w"))'
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("amout > 1", "did you mean `Amount`?"),
        ("customer.nam = 'x'", "did you mean `customer.Name`?"),
        ("zzz = 1", "columns:"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        parse(text, schema=_ORDERS)
    assert caught.value.code == "E1002"
    assert hint in str(caught.value)


def test_unknown_name_of_an_alias() -> None:
    with pytest.raises(NotFoundError) as caught:
        parse("t.w = 1", schema=_TWO)
    assert "t.id, t.v" in str(caught.value)


def test_ambiguous_names_show_the_choices() -> None:
    with pytest.raises(NotFoundError) as caught:
        parse("id = 1", schema=_TWO)
    assert "ambiguous" in str(caught.value)
    assert "t.id, s.id" in str(caught.value)


def test_names_that_differ_in_case_only_are_ambiguous() -> None:
    with pytest.raises(NotFoundError):
        parse("a = 1", schema=pa.schema([("a", pa.int32()), ("A", pa.int32())]))


def test_a_column_of_a_foreign_type_is_refused() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("u = 1", schema=_ORDERS)
    assert "uint16" in str(caught.value)
