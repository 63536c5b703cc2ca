"""Operators, grouped as Spark's grammar groups them.

sqlglot's precedence is nobody's in particular: ``||`` binds weaker than ``+`` there, ``&``, ``^`` and ``|`` bind alike,
and predicates chain. In Spark a value is built from, tightest first: unary ``- + ~``; ``* / % DIV``; ``+ - ||``;
shifts; ``&``; ``^``; ``|``; comparisons, all at one level and from left to right. Behind a value stands at most one
predicate (BETWEEN, IN, LIKE, RLIKE, IS), before it any number of NOT.

Invariant: for every text that Spark's parser takes, the tree is grouped as Spark groups it, so that nobody above has to
ask for parentheses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType  # type: ignore[attr-defined, unused-ignore]

__all__ = ["OperatorGrammar", "UnsignedRightShift"]


class UnsignedRightShift(exp.Expression, exp.Binary):
    """``a >>> b``, which sqlglot does not know."""


_SHIFTS: tuple[tuple[tuple[TokenType, ...], type[exp.Expr]], ...] = (
    ((TokenType.GT, TokenType.GT, TokenType.GT), UnsignedRightShift),
    ((TokenType.GT, TokenType.GT), exp.BitwiseRightShift),
    ((TokenType.LT, TokenType.LT), exp.BitwiseLeftShift),
)
_TERMS: Mapping[TokenType, type[exp.Expr]] = {
    TokenType.PLUS: exp.Add,
    TokenType.DASH: exp.Sub,
    TokenType.DPIPE: exp.DPipe,
    TokenType.COLLATE: exp.Collate,
}
_AND: Mapping[TokenType, type[exp.Expr]] = {TokenType.AMP: exp.BitwiseAnd}
_XOR: Mapping[TokenType, type[exp.Expr]] = {TokenType.CARET: exp.BitwiseXor}
_OR: Mapping[TokenType, type[exp.Expr]] = {TokenType.PIPE: exp.BitwiseOr}
_COMPARISONS: Mapping[TokenType, type[exp.Expr]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
}
# ``!<`` and ``!>`` are further spellings of ``>=`` and ``<=``.
_NEGATED: Mapping[TokenType, type[exp.Expr]] = {TokenType.LT: exp.GTE, TokenType.GT: exp.LTE}
_PREDICATES = (TokenType.BETWEEN, TokenType.ILIKE, TokenType.IN, TokenType.IS, TokenType.LIKE, TokenType.RLIKE)
_QUANTIFIERS: Mapping[str, type[exp.Expr]] = {"ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}
_LIKES: Mapping[TokenType, type[exp.Expr]] = {
    TokenType.LIKE: exp.Like,
    TokenType.ILIKE: exp.ILike,
    TokenType.RLIKE: exp.RegexpLike,
}


class OperatorGrammar(Spark.Parser):  # type: ignore[misc, valid-type, unused-ignore]
    """The part of the parser that knows operators."""

    # --- conditions: what AND and OR join

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        if self._match(TokenType.NOT):
            mark = self._prev
            inner = self._parse_equality()
            if inner is None:
                self.raise_error("=something is missing after this", mark)
            found = self._built(exp.Not, mark, this=inner)
            found.meta["before"] = True  # NOT a IS NULL, which has another name than a IS NOT NULL
            return found
        return self._parse_range()

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """A value with its comparisons: Spark's valueExpression."""
        this = this or self._parse_bitwise()
        while this is not None:
            kind = self._comparison()
            if kind is None:
                break
            this = self._binary(kind, this, self._parse_bitwise())
        return this

    def _comparison(self) -> type[exp.Expr] | None:
        if self._match_set(_COMPARISONS):
            return _COMPARISONS[self._prev.token_type]
        bang = self._curr is not None and self._curr.text == "!" and self._next is not None
        if bang and self._next.token_type in _NEGATED and self._curr.end + 1 == self._next.start:
            self._advance(2)
            return _NEGATED[self._prev.token_type]
        return None

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        """A value with the one predicate that may stand behind it."""
        this = this or self._parse_comparison()
        if this is None:
            return None
        negated = self._negated_ahead()
        if negated:
            self._advance()
        if not self._match_set(_PREDICATES):
            return this
        kind = self._prev.token_type
        if kind == TokenType.IS and (negated or (self._curr is not None and self._curr.text == "!")):
            self.raise_error("=write IS NOT NULL", self._prev)
        found: exp.Expr | None = self._like(this, kind) if kind in _LIKES else self.RANGE_PARSERS[kind](self, this)
        if not negated or found is None:
            return found
        return self._negate_range(found)  # type: ignore[no-any-return, unused-ignore]

    def _negated_ahead(self) -> bool:
        """NOT before a predicate; ``!`` cannot stand there."""
        here, behind = self._curr, self._next
        return (
            here is not None
            and behind is not None
            and here.token_type == TokenType.NOT
            and here.text.upper() == "NOT"
            and behind.token_type in _PREDICATES
        )

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        if distinct:
            return self._parse_comparison()
        return self._parse_null() or self._parse_bitwise()

    def _parse_between(self, this: exp.Expr | None) -> Any:
        low = self._parse_comparison()
        if not self._match(TokenType.AND):
            self.raise_error("=AND is expected here")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_comparison()))

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> Any:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error("Expecting (")
        return super()._parse_in(this, alias)

    def _like(self, this: exp.Expr, kind: TokenType) -> exp.Expr:
        """LIKE with one pattern, or with ANY, SOME or ALL of a list; only the former has an ESCAPE."""
        mark = self._prev
        if not mark.text.isalpha():
            self.raise_error("=write LIKE", mark)
        word = self._curr.text.upper() if self._curr is not None else ""
        listed = self._next is not None and self._next.token_type == TokenType.L_PAREN
        if word in _QUANTIFIERS and listed and kind != TokenType.RLIKE:
            self._advance()
            quantifier = self._prev
            patterns = self._parse_wrapped_csv(self._parse_disjunction)
            if not patterns:
                self.raise_error("=a list of patterns is expected here", quantifier)
            several = _QUANTIFIERS[word](this=exp.Tuple(expressions=patterns))
            return self._built(_LIKES[kind], mark, this=this, expression=several)
        pattern = self._parse_comparison()
        if pattern is None:
            self.raise_error("=something is missing after this", mark)
        found: exp.Expr = self.expression(_LIKES[kind](this=this, expression=pattern))
        if kind == TokenType.RLIKE or not self._match(TokenType.ESCAPE):
            return found
        escape = self._parse_string()
        if escape is None:
            self.raise_error("=ESCAPE takes a string of one character", self._prev)
        return self._built(exp.Escape, mark, this=found, expression=escape)

    # --- values

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._chain(lambda: self._chain(self._parse_masked, _XOR), _OR)

    def _parse_masked(self) -> exp.Expr | None:
        return self._chain(self._parse_shifted, _AND)

    def _parse_shifted(self) -> exp.Expr | None:
        this = self._parse_term()
        while this is not None and (kind := self._shift()) is not None:
            this = self._binary(kind, this, self._parse_term())
        return this

    def _shift(self) -> type[exp.Expr] | None:
        """Tokens of one character that lie side by side."""
        for marks, kind in _SHIFTS:
            ahead = self._tokens[self._index : self._index + len(marks)]
            joined = all(a.end + 1 == b.start for a, b in itertools.pairwise(ahead))
            if tuple(t.token_type for t in ahead) == marks and joined:
                self._advance(len(marks))
                return kind
        return None

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        return self._chain(lambda: self._parse_factor(parse_mod=parse_mod), _TERMS)

    def _chain(
        self, operand: Callable[[], exp.Expr | None], kinds: Mapping[TokenType, type[exp.Expr]]
    ) -> exp.Expr | None:
        this = operand()
        while this is not None and self._match_set(kinds):
            this = self._binary(kinds[self._prev.token_type], this, operand())
        return this

    def _binary(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr | None) -> exp.Expr:
        if right is None:
            self.raise_error("=something is missing after this", self._prev)
        return self.expression(kind(this=left, expression=right))  # type: ignore[no-any-return, unused-ignore]

    def _plus(self) -> exp.Expr:
        """``+ x``: for Spark a function of its own, with a name of its own."""
        mark = self._prev
        inner = self._parse_unary()
        if inner is None:
            self.raise_error("=something is missing after this", mark)
        found = self._built(exp.Anonymous, mark, this="positive", expressions=[inner])
        found.meta["sign"] = True
        return found

    def _signed(self, kind: type[exp.Expr]) -> exp.Expr:
        mark = self._prev
        inner = self._parse_unary()
        if inner is None:
            self.raise_error("=something is missing after this", mark)
        return self._built(kind, mark, this=inner)

    def _built(self, kind: type[exp.Expr], mark: Any, **parts: Any) -> exp.Expr:
        """A node that stands where ``mark`` does."""
        found: exp.Expr = self.expression(kind(**parts))
        found.meta.update(start=mark.start, end=mark.end)
        return found


OperatorGrammar.UNARY_PARSERS = {
    TokenType.PLUS: lambda self: self._plus(),
    TokenType.DASH: lambda self: self._signed(exp.Neg),
    TokenType.TILDE: lambda self: self._signed(exp.BitwiseNot),
    TokenType.NOT: Spark.Parser.UNARY_PARSERS[TokenType.NOT],
}
