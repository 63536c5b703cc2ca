"""What can be done about a query that is refused as a view's, where other things can be done about a query that is run.

A query is read the same way whether it is run or kept. What our reader refuses, another engine may run; a view has no
engine, but Spark's analyzer may read its query. And what cannot be kept up to date can still be computed each time.
"""

from __future__ import annotations

from headwater.base.errors import Action, InputError, UnsupportedError

__all__ = ["about_keeping", "about_reading"]

_NOT_MAINTAINED = "E3007"


def about_reading(refusal: InputError, *, asked: bool) -> None:
    """Let Spark's analyzer read what an engine would have run; ``asked`` says that it was asked already.

    >>> from headwater.base.errors import ExpressionError
    >>> error = ExpressionError.refused("x", "this", "leave it out")
    >>> about_reading(error, asked=False)
    >>> error.hint
    "leave it out, or let Spark's analyzer read it: hw.connect(path, spark=hw.spark())"
    """
    verb = "compute_where_read" if asked else "analyze_on_spark"

    def chosen(action: Action) -> Action:
        if not action.phrase.names_engine:
            return action
        when = dict(action.given).get("when")
        return Action(verb, also=action.also, when=None if when is None else f"{when}, ")

    refusal.replace_actions(chosen)


def about_keeping(refusal: UnsupportedError) -> None:
    """Offer the policy that computes a view each time, where that is what its query needs."""
    if refusal.code == _NOT_MAINTAINED:
        refusal.advise(Action("full_policy", also=True))
