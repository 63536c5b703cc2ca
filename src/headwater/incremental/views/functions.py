"""Functions of the user's own in views: a view is a view by the very functions that it was defined with.

Its definition keeps their names and fingerprints. The functions themselves are the process's, registered with the lake, so a process that does not
have one, or has another one of its name, stops before anything is read: rows computed by another function
would be those of another view.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.errors import InputError, NotFoundError
from headwater.sql.functions.user import UserFunction, user_operators
from headwater.sql.nodes import walk
from headwater.sql.plan import Plan

__all__ = ["check_functions", "functions_of", "missing", "same_functions"]


def functions_of(plan: Plan) -> dict[str, str]:
    """The user's functions that a plan calls: the fingerprint of each by its name."""
    parts = [part for node in _nodes(plan) for e in node.expressions for part in walk(e)]
    return dict(sorted(user_operators(parts)))


def _nodes(plan: Plan) -> list[Plan]:
    inner = [*plan.children, *(s.plan for s in plan.subqueries())]
    return [plan, *(node for part in inner for node in _nodes(part))]


def missing(wanted: Mapping[str, str], registered: Mapping[str, UserFunction]) -> list[str]:
    """The names of functions that are wanted and not registered."""
    return [name for name in wanted if name not in registered]


def same_functions(wanted: Mapping[str, str], registered: Mapping[str, UserFunction]) -> bool:
    """Whether those that are wanted are those that are registered."""
    return all(registered[name].fingerprint == print_ for name, print_ in wanted.items() if name in registered)


def check_functions(view: str, wanted: Mapping[str, str], registered: Mapping[str, UserFunction]) -> None:
    """Stop where a view's functions are not at hand."""
    for name in missing(wanted, registered):
        raise NotFoundError.function(name, view, wanted[name], list(registered))
    for name, print_ in wanted.items():
        if registered[name].fingerprint != print_:
            raise InputError.other_function(name, view, print_, registered[name].fingerprint)
