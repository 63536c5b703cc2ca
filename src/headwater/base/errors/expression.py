"""Predicates and SQL texts that do not parse, resolve or compute."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.action import Action, Hint
from headwater.base.errors.input import InputError
from headwater.base.errors.wording import shortened

__all__ = ["REMEDY", "ExpressionError"]

REMEDY = " remedy!"
"""In a reason: what stands behind it says what to do, where it is not the rows that are at fault."""


# What to do about a failure, by the words that it is reported in. Where an expression gives null for what fails, that
# is shown.
_WAYS_OUT = {
    "division by zero": "try_divide(a, b) and a / nullif(b, 0) give null instead",
    "cannot be cast": "try_cast(x AS type) gives null instead",
    "overflow": "cast to a wider type first, or take try_add(), try_subtract() or try_multiply(), which give null",
    "no element of that number": "get(xs, i) and try_element_at(xs, i) give null instead",
    "counted from 1": "write element_at(xs, 1) for the first element",
    "more than one row": "add LIMIT 1, or aggregate it to one row",
}


def _explained(why: str) -> tuple[str, str | None]:
    """A reason without its remedy, and what to do."""
    reason, _, remedy = why.partition(REMEDY)
    return reason, remedy or next((hint for words, hint in _WAYS_OUT.items() if words in reason), None)


class ExpressionError(InputError):
    """A predicate or SQL text that does not parse or resolve."""

    # The position of the row that failed, where it is known.
    row: int | None = None
    # Where it is not a row that failed but something made of many: the key that they have.
    key: dict[str, object] | None = None

    @classmethod
    def syntax(cls, text: str, why: str, position: int | None = None) -> Self:
        return cls("E1301", f"cannot parse this: {why}", hint="correct the text there").placed_at(text, position)

    @classmethod
    def statement(cls, text: str, why: str, position: int | None, hint: Hint) -> Self:
        return cls("E1306", f"cannot read the statement: {why}", hint=hint).on("sql").placed_at(text, position)

    @classmethod
    def not_known(cls, text: str, what: str, hint: Hint, position: int | None = None) -> Self:
        made = cls("E1302", f"{what} is not supported in expressions here", hint=hint)
        return made.placed_at(text, position)

    @classmethod
    def refused(cls, text: str, what: str, hint: Hint, position: int | None = None) -> Self:
        made = cls("E1305", f"{what} is not known to give Spark's rows here", hint=hint)
        if not any(action.phrase.names_engine for action in made.actions):
            made.advise(Action("run_on_spark"))
        return made.placed_at(text, position)

    @classmethod
    def wrong(cls, text: str, why: str, hint: Hint, position: int | None = None) -> Self:
        return cls("E1311", why, hint=hint).placed_at(text, position)

    @classmethod
    def no_fixpoint(cls, variables: str, rounds: int) -> Self:
        return cls(
            "E1312",
            f"the recursion of {variables} still finds new rows after {rounds} rounds",
            hint="nothing was changed; bound what it may reach",
            actions=[Action("raise_rounds")],
        )

    @classmethod
    def failed(cls, text: str, why: str) -> Self:
        reason, remedy = _explained(why)
        hint = f"nothing was written; {remedy or 'correct the rows or the expression'}"
        return cls("E1303", f"the evaluation failed: {reason}", where=shortened(text, 120), hint=hint)

    @classmethod
    def query_failed(cls, text: str, why: str) -> Self:
        reason, remedy = _explained(why)
        hint = remedy or "correct the rows or the query"
        return cls("E1308", f"the query failed: {reason}", where=shortened(text), hint=hint)

    def in_query(self, text: str) -> ExpressionError:
        """The same error, where it is a query that failed and nothing was to be written."""
        said = "the evaluation failed: "
        if self.code != "E1303" or not self.message.startswith(said):
            return self
        return ExpressionError.query_failed(text, self.message.removeprefix(said))

    @classmethod
    def engine_refused(cls, text: str, engine: str) -> Self:
        what = f"the query failed: the engine refused it ({engine})"
        around = Action("spark_around", also=True)
        hint = "this should not happen: report it"
        return cls("E1313", what, where=shortened(text), hint=hint, actions=[around])

    @classmethod
    def pattern_explodes(cls, pattern: str, steps: int, where: str) -> Self:
        return cls(
            "E1314",
            f"the row pattern has too many ways: {steps:,} steps {where} found no end",
            where=shortened(pattern),
            hint="nothing was changed; bound it with WITHIN, a smaller {n,m}, or conditions that end a loop sooner",
        )

    @classmethod
    def skip_to_nothing(cls, pattern: str, variables: str) -> Self:
        why = f"AFTER MATCH SKIP goes to {variables}, and a match has no row of it"
        hint = "nothing was changed; skip to a variable that every match has, or PAST LAST ROW"
        return cls("E1315", why, where=shortened(pattern), hint=hint)

    @classmethod
    def skip_to_first(cls, pattern: str, variables: str) -> Self:
        why = f"AFTER MATCH SKIP goes to {variables}, which is the first row of a match: the search would not go on"
        hint = "nothing was changed; skip TO NEXT ROW, or to a later variable"
        return cls("E1316", why, where=shortened(pattern), hint=hint)

    @classmethod
    def native(cls, text: str, why: str, engine: str) -> Self:
        return cls("E1309", f"{engine} does not take this SQL: {why}", where=shortened(text))

    @classmethod
    def spark(cls, text: str, why: str, position: int | None = None) -> Self:
        return cls("E1310", f"Spark does not take this SQL: {why}").placed_at(text, position)

    @classmethod
    def not_boolean(cls, text: str, kind: str) -> Self:
        made = cls("E1304", f"the condition gives {kind}, not a boolean", hint="compare it with something")
        return made.placed_at(text, 0)
