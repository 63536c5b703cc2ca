"""Search queries that cannot be read, or that are too large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.lakehouse import Lake
from headwater.search.language import MAX_CLAUSES, MAX_DEPTH, MAX_LENGTH, parse

Attempt = Callable[[], Any]


def case_search_query_that_is_empty(lake: Lake) -> Attempt:
    return lambda: parse(" ")


def case_search_query_with_a_quote_that_is_never_closed(lake: Lake) -> Attempt:
    return lambda: parse('title:card AND body:"lost card')


def case_search_query_with_too_large_a_distance(lake: Lake) -> Attempt:
    return lambda: parse("card AND lsot~5")


def case_search_query_on_several_lines(lake: Lake) -> Attempt:
    return lambda: parse("title:(card\n  OR lost\n  OR )")


def case_search_query_that_is_too_long(lake: Lake) -> Attempt:
    return lambda: parse("card " * MAX_LENGTH)


def case_search_query_that_is_too_deep(lake: Lake) -> Attempt:
    return lambda: parse("(a OR " * MAX_DEPTH + "b" + ")" * MAX_DEPTH)


def case_search_query_with_too_many_clauses(lake: Lake) -> Attempt:
    return lambda: parse("a " * (MAX_CLAUSES + 1))


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
