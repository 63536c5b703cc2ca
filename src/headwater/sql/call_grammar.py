"""Calls with words between their arguments: EXTRACT(YEAR FROM x), OVERLAY(x PLACING y FROM 2 FOR 3), TRIM(LEADING 'a'
FROM x).

Where Spark also has the same function with commas, the call with commas is an ordinary one: its column has another
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType  # type: ignore[attr-defined, unused-ignore]

from headwater.sql.operator_grammar import OperatorGrammar

__all__ = ["CallGrammar"]

_TRIM_SIDES = {"BOTH", "LEADING", "TRAILING"}


class CallGrammar(OperatorGrammar):
    """The part of the parser that knows such calls."""

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        start = self._curr
        found: exp.Expr | None = super()._parse_function_call(*args, **kwargs)
        if found is not None and start is not None:
            found.meta.setdefault("start", start.start)  # CASE, IF, ANY (SELECT …)
        return found

    def _since(self, start: int) -> Iterator[tuple[Any, int]]:
        """The tokens read since ``start``, each with how many parentheses are open before it."""
        depth = 0
        for token in self._tokens[start : self._index]:
            depth -= token.token_type == TokenType.R_PAREN
            yield token, depth
            depth += token.token_type == TokenType.L_PAREN

    def _parse_extract_from(self) -> exp.Expr:
        if self._next is None or self._next.token_type != TokenType.FROM:
            self.raise_error("=write EXTRACT(YEAR FROM x)", self._next or self._curr)
        word = self._curr.text
        found: exp.Expr = Spark.Parser.FUNCTION_PARSERS["EXTRACT"](self)
        found.meta["word"] = word
        return found

    def _parse_position_of(self) -> exp.Expr:
        start = self._index
        found: exp.Expr = Spark.Parser.FUNCTION_PARSERS["POSITION"](self)
        if any(t.token_type == TokenType.COMMA for t, depth in self._since(start) if depth == 0):
            self._retreat(start)  # an ordinary call
            found = exp.Anonymous(this="position", expressions=self._parse_csv(self._parse_disjunction))
        return found

    def _parse_substring_of(self) -> exp.Expr:
        """``SUBSTRING(s FROM 2 FOR 3)``; a comma may stand in the place of each word."""
        name, words = self._tokens[self._index - 2].text.lower(), False
        parts = [self._parse_comparison()]
        for word in (TokenType.FROM, TokenType.FOR):
            if not self._match_set((word, TokenType.COMMA)):
                break
            words = words or self._prev.token_type == word
            parts.append(self._parse_comparison())
        if None in parts:
            self.raise_error("=write SUBSTRING(x FROM 1 FOR 2)", self._prev)
        if not self._match(TokenType.R_PAREN, advance=False):
            self.raise_error("=SUBSTRING takes a string, a start and a length")
        if name == "substr" and not words:
            return exp.Anonymous(this=name, expressions=parts)  # a call, whose column is named otherwise
        found: exp.Expr = self.expression(exp.Substring(**dict(zip(("this", "start", "length"), parts, strict=False))))
        return found

    def _parse_overlay_of(self) -> exp.Expr:
        """``OVERLAY(s PLACING r FROM 2 FOR 3)``, or a call with commas."""
        start = self._index
        parts = [self._parse_comparison()]
        if not self._match_text_seq("PLACING"):
            self._retreat(start)
            return exp.Anonymous(this="overlay", expressions=self._parse_csv(self._parse_disjunction))
        parts.append(self._parse_comparison())
        if not self._match(TokenType.FROM):
            self.raise_error("=write OVERLAY(x PLACING y FROM 2 FOR 3)")
        parts.append(self._parse_comparison())
        if self._match(TokenType.FOR):
            parts.append(self._parse_comparison())
        if None in parts or not self._match(TokenType.R_PAREN, advance=False):
            self.raise_error("=write OVERLAY(x PLACING y FROM 2 FOR 3)")
        return exp.Anonymous(this="overlay", expressions=parts)

    def _parse_trim_of(self) -> exp.Expr:
        start, first = self._index, self._curr
        found: exp.Expr = Spark.Parser.FUNCTION_PARSERS["TRIM"](self)
        marks = {t.token_type for t, depth in self._since(start) if depth == 0}
        sided = first.text.upper() in _TRIM_SIDES and isinstance(found, exp.Trim) and found.args.get("position")
        if first.token_type == TokenType.FROM or (sided and (TokenType.FROM not in marks or TokenType.COMMA in marks)):
            self.raise_error("=write TRIM(LEADING 'a' FROM x)", first)
        return found


def _standing(parser: Callable[[Any], exp.Expr]) -> Callable[[Any], exp.Expr]:
    """A parser of a call that remembers where the call began: two tokens back, behind the name and the parenthesis."""

    def parse(self: Any) -> exp.Expr:
        name = self._tokens[self._index - 2]
        found = parser(self)
        found.meta.setdefault("start", name.start)
        found.meta.setdefault("end", name.end)
        return found

    return parse


_OWN: dict[str, Callable[[Any], exp.Expr]] = {
    **{name: Spark.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")},
    "EXTRACT": lambda self: self._parse_extract_from(),
    "OVERLAY": lambda self: self._parse_overlay_of(),
    "POSITION": lambda self: self._parse_position_of(),
    "SUBSTR": lambda self: self._parse_substring_of(),
    "SUBSTRING": lambda self: self._parse_substring_of(),
    "TRIM": lambda self: self._parse_trim_of(),
}
CallGrammar.FUNCTION_PARSERS = {name: _standing(parser) for name, parser in _OWN.items()}
