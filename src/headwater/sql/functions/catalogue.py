"""All functions by name, with their forms in DuckDB's SQL. What is not here is not called:
see `headwater.sql.calls`.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.sql.functions import (
    aggregate,
    approximate,
    array,
    array_change,
    array_set,
    bitmap,
    bitwise,
    calendar,
    cipher,
    conditional,
    datetime,
    datetime_format,
    digest,
    encoding,
    higher_order,
    interval,
    json,
    letters,
    math,
    number_format,
    number_text,
    numeric,
    of_types,
    pieces,
    printf,
    regexp,
    statistics,
    string,
    struct,
    time_bucket,
    url,
    utf8,
    vector,
    window,
)
from headwater.sql.functions import map as map_
from headwater.sql.functions.function import AggregateForm, ByOrder, Form, Function, overloaded

__all__ = [
    "AGGREGATES",
    "AGGREGATE_FORMS",
    "FORMS",
    "FUNCTIONS",
    "MANY_ROWS",
    "UNIT_FIRST",
    "UNSTABLE",
    "by_order",
    "empty_value",
]

_FAMILIES = (
    aggregate,
    approximate,
    array,
    array_change,
    array_set,
    bitmap,
    bitwise,
    calendar,
    cipher,
    conditional,
    datetime,
    datetime_format,
    digest,
    encoding,
    higher_order,
    interval,
    json,
    letters,
    map_,
    math,
    number_format,
    number_text,
    numeric,
    of_types,
    pieces,
    printf,
    regexp,
    statistics,
    string,
    struct,
    time_bucket,
    url,
    utf8,
    vector,
    window,
)
_UNSTABLE_NAMES = """
    current_timestamp current_date current_time current_user current_timezone localtimestamp now curdate
    rand random randn uuid shuffle user session_user monotonically_increasing_id
    input_file_name spark_partition_id randstr uniform
"""
_MANY_ROW_NAMES = """
    any any_value approx_count_distinct array_agg avg bool_and bool_or collect_list collect_set corr
    count count_if every first first_value kurtosis last last_value max max_by mean median min min_by
    mode percentile skewness some std stddev sum variance row_number rank dense_rank lag lead ntile
    percent_rank cume_dist nth_value
"""
UNSTABLE = frozenset(_UNSTABLE_NAMES.split())
# Their first argument is a bare word: timestampadd(MONTH, 1, ts).
UNIT_FIRST = frozenset({"timestampadd", "timestampdiff", "dateadd", "date_diff", "datediff"})
MANY_ROWS = frozenset(_MANY_ROW_NAMES.split())

FUNCTIONS: dict[str, Function] = {}
AGGREGATES: dict[str, Function] = {}
FORMS: dict[str, Form] = {}
AGGREGATE_FORMS: dict[str, AggregateForm] = {}
for _family in _FAMILIES:
    for _function in _family.FUNCTIONS:
        (FUNCTIONS if _function.kind == "scalar" else AGGREGATES)[_function.name] = _function
        FORMS.update(_function.forms)
# Strings and arrays have some names in common: the arguments decide.
for _name, _build in array_change.OVERLOADS.items():
    FUNCTIONS[_name] = replace(FUNCTIONS[_name], build=overloaded(FUNCTIONS[_name].build, _build))
# Several names may share an operator (mean and avg): the form belongs to the operator.
for _function in AGGREGATES.values():
    assert _function.aggregate_form is not None
    AGGREGATE_FORMS[_function.name] = _function.aggregate_form
AGGREGATE_FORMS["first ignore nulls"] = lambda _, a, apply: apply("first", a[0], only=f"{a[0]} IS NOT NULL")
AGGREGATE_FORMS["last ignore nulls"] = lambda _, a, apply: apply("last", a[0], only=f"{a[0]} IS NOT NULL")
AGGREGATE_FORMS["max_by of several"] = aggregate.several_by_form("DESC")
AGGREGATE_FORMS["min_by of several"] = aggregate.several_by_form("ASC")
AGGREGATE_FORMS["mode least"] = statistics.mode_form("list_min")
AGGREGATE_FORMS["mode greatest"] = statistics.mode_form("list_max")


def by_order(op: str) -> ByOrder:
    """How an aggregate or window function depends on the order of its rows, by the operator of its calls.

    >>> by_order("rank"), by_order("first ignore nulls"), by_order("sum")
    ('peers', 'place', 'no')
    """
    function = AGGREGATES.get(op.removesuffix(" ignore nulls"))
    return "no" if function is None else function.by_order


def empty_value(op: str) -> object:
    """What an aggregate gives for no rows, by the operator of its calls.

    >>> empty_value("count"), empty_value("collect_list"), empty_value("sum")
    (0, [], None)
    """
    function = AGGREGATES.get(op)
    return None if function is None else function.empty
