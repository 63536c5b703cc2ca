"""The whole plan of a query, from the JSON that Spark's analyzer gave."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.base.errors import UnsupportedError
from headwater.sql.analyzed import (
    aggregates,
    constants,
    conversions,
    definitions,
    functions,
    generators,
    groups,
    intervals,
    joins,
    limits,
    moments,
    nested,
    operators,
    projections,
    relations,
    sets,
    subqueries,
    user,
    windows,
)
from headwater.sql.analyzed.reading import Reading
from headwater.sql.analyzed.tidy import tidied
from headwater.sql.analyzed.tree import parsed
from headwater.sql.functions.user import UserFunction, functions_by_name
from headwater.sql.intervals.lowering import lowered_plan
from headwater.sql.nodes import Refused
from headwater.sql.plan import Plan

__all__ = ["plan_of"]

# Each of them registers what it reads when it is imported.
_FAMILIES = (
    *(aggregates, constants, conversions, definitions, functions, generators, groups, intervals, joins),
    *(limits, moments, nested, operators, projections, relations, sets, subqueries, user, windows),
)


def plan_of(json_text: str, user_functions: Iterable[UserFunction] = ()) -> Plan:
    """The plan that Spark's analyzer made of a query.

    Parameters
    ----------
    json_text
        What `headwater.spark.analyzer.analyzed` gave.
    user_functions
        The Python functions that the query may call.

    Raises
    ------
    UnsupportedError
        The plan holds a class that is not read here, or a use of one (E3003).
    SchemaError
        A column of the answer is an interval (E1213).

    Examples
    --------
    >>> one = '{"class": "Literal", "num-children": 0, "value": "1", "dataType": "integer"}'
    >>> alias = '{"class": "Alias", "num-children": 1, "name": "n", "exprId": 7}'
    >>> project = f'{{"class": "Project", "num-children": 1, "projectList": [[{alias}, {one}]]}}'
    >>> row = '{"class": "OneRowRelation", "num-children": 0}'
    >>> print(plan_of(f'{{"format": 1, "plan": [{project}, {row}]}}').dump(), end="")
    project 1 as n#1
      one row
    """
    try:
        return lowered_plan(tidied(Reading(functions_by_name(user_functions)).rows(parsed(json_text), None).plan))
    except Refused as refused:
        raise UnsupportedError.operation(
            f"{refused.what} cannot be taken over from Spark's plan",
            "it is not known to give Spark's rows here",
            refused.hint,
        ) from None
