"""Whatever is typed, the answer is an expression or one of our errors: never another exception, never a statement."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import HeadwaterError
from headwater.sql.expressions import evaluate, parse

_TABLE = pa.table({"a": pa.array([1, None], pa.int32()), "s": ["x", None], "b": [True, False], "d": [1.5, None]})
_LIST = (
    "a s b d t.a A `a` 1 0 -1 1.5 1e3 10L 'x' 'it''s' \"q\" NULL TRUE FALSE ( ) ( ) , + - * / % || = == <> != < <= > >= <=> AND "
    "OR NOT ! IS NULL IN LIKE BETWEEN CASE WHEN THEN ELSE END CAST( AS int) string) decimal(5,2)) array<int>) foo) coalesce( "
    "if( upper( date '2024-01-01' SELECT FROM EXISTS OVER DISTINCT * ; -- /* */ :: [ ] . { } ? : @ # $ & ~ ^ | -> => x'00' r'a' "
    "INTERVAL day ESCAPE ANY ALL UNION ORDER BY LIMIT FILTER WHERE STRUCT( MAP( ARRAY( lambda x INTO SET CREATE USE"
)
_WORDS = _LIST.split()


def _read(text: str) -> None:
    try:
        expression = parse(text, schema=_TABLE.schema)
        evaluate(expression, _TABLE)
    except HeadwaterError:
        pass


@given(st.lists(st.lists(st.sampled_from(_WORDS), max_size=9).map(" ".join), max_size=40))
def test_words_in_any_order(texts: list[str]) -> None:
    for text in texts:
        _read(text)


@given(st.lists(st.text(max_size=12), max_size=30))
def test_any_characters(texts: list[str]) -> None:
    for text in texts:
        _read(text)
