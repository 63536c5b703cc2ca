"""Hints for views: where a query would be run by Spark, a view is read by its analyzer, and needs a lake that has a session."""

from __future__ import annotations

from headwater.base.errors import HeadwaterError, UnsupportedError

__all__ = ["about_policy", "about_spark"]

_SAID = ('run the query with engine="spark"', 'run it with engine="spark"', 'use engine="spark"')
_CONNECT = "let Spark's analyzer read it: hw.connect(path, spark=hw.spark())"
_ASKED = "compute it where the view is read: Spark's analyzer gives no plan for it that can be used here"
_CLOCKS = "E3007"


def about_spark(error: HeadwaterError, *, asked: bool) -> None:
    """Let the hint of a refusal be one for views; ``asked`` says that Spark's analyzer was."""
    for said in _SAID:
        if error.hint is not None:
            error.hint = error.hint.replace(said, _ASKED if asked else _CONNECT)


def about_policy(error: UnsupportedError) -> None:
    """Say that a view may have it which is computed anew each time, if that is so."""
    if error.code == _CLOCKS:
        error.hint = f'{error.hint}; or policy="full", which computes it anew each time'
