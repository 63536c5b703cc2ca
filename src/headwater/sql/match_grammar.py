"""MATCH_RECOGNIZE behind a table: its clauses, as a node of the parsed tree.

sqlglot knows the clause as a part of the query, keeps the pattern as text and leaves out SUBSET and WITHIN. Here it
stands where it is written, behind a table or a subquery, with all of its clauses as expressions. The pattern comes as
a text (`headwater.sql.lexis` takes it out), and is read by `headwater.sql.row_patterns`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType  # type: ignore[attr-defined, unused-ignore]

__all__ = ["MatchGrammar", "RowPatternTable"]

_SEMANTICS = ("RUNNING", "FINAL")
_ROWS = {
    ("SHOW", "EMPTY", "MATCHES"): "empty",
    ("OMIT", "EMPTY", "MATCHES"): "no empty",
    ("WITH", "UNMATCHED", "ROWS"): "unmatched",
}


class RowPatternTable(exp.Expression):  # type: ignore[misc, unused-ignore]
    """A table, and what MATCH_RECOGNIZE says about its rows."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "partition": False,
        "order": False,
        "measures": False,
        "every_row": False,
        "empty": False,
        "unmatched": False,
        "skip": False,
        "pattern": True,
        "within": False,
        "subsets": False,
        "definitions": False,
        "alias": False,
    }


class MatchGrammar(Spark.Parser):  # type: ignore[misc, valid-type, name-defined, unused-ignore]
    """The part of the parser that knows the clause."""

    _clauses_open = 0

    def _sees_match(self) -> bool:
        ahead = self._next is not None and self._next.token_type == TokenType.L_PAREN
        return self._curr is not None and self._curr.text.upper() == "MATCH_RECOGNIZE" and ahead

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.Expr | None:
        if self._sees_match():
            return None
        found: exp.Expr | None = super()._parse_table_alias(alias_tokens)
        return found

    def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._parse_table(*args, **kwargs)
        while found is not None and self._sees_match():
            found = self._parse_match_clause(found)
        return found

    def _parse_unary(self) -> Any:
        """``FINAL LAST(A.x)``: the word is kept at the call."""
        word = self._curr.text.upper() if self._curr is not None else ""
        behind = self._tokens[self._index + 1 : self._index + 3]
        if not self._clauses_open or word not in _SEMANTICS or [t.text for t in behind[1:]] != ["("]:
            return super()._parse_unary()
        start = self._curr.start
        self._advance()
        found = super()._parse_unary()
        call = found.this if isinstance(found, exp.Filter) else found
        if not isinstance(call, exp.Anonymous):
            self.raise_error(f"={word} stands before FIRST, LAST or an aggregate", self._prev)
        call.meta["semantics"] = word
        call.meta["start"] = start
        return found

    def _parse_match_clause(self, table: exp.Expr) -> exp.Expr:
        start = self._curr.start
        self._advance(2)
        self._clauses_open += 1
        given: dict[str, Any] = {"this": table}
        if self._match(TokenType.PARTITION_BY):
            given["partition"] = self._parse_csv(self._parse_disjunction)
        given["order"] = self._parse_order()
        if self._match_text_seq("MEASURES"):
            given["measures"] = self._parse_csv(lambda: self._parse_item_named("MEASURES"))
        given |= self._parse_rows_per_match()
        if self._match_text_seq("AFTER", "MATCH"):
            given["skip"] = self._parse_skip()
        if self._match_texts(("INITIAL", "SEEK")):
            self.raise_error("=INITIAL and SEEK belong to patterns in windows; leave the word out", self._prev)
        self._expect("PATTERN")
        given["pattern"] = self._parse_pattern_text()
        if self._match_text_seq("WITHIN"):
            given["within"] = self._parse_bitwise()
            if given["within"] is None:
                self.raise_error("=write WITHIN INTERVAL 10 SECONDS", self._prev)
        if self._match_text_seq("SUBSET"):
            given["subsets"] = self._parse_csv(self._parse_subset)
        if self._match_text_seq("DEFINE"):
            given["definitions"] = self._parse_csv(self._parse_definition)
        if not self._match(TokenType.R_PAREN):
            order = "PARTITION BY, ORDER BY, MEASURES, … PER MATCH, AFTER MATCH SKIP, PATTERN, WITHIN, SUBSET, DEFINE"
            self.raise_error(f"=this is not expected in MATCH_RECOGNIZE; its clauses are {order}, in this order")
        self._clauses_open -= 1
        given["alias"] = self._parse_table_alias()
        found: exp.Expr = RowPatternTable(**given)
        found.meta["start"] = start
        return found

    def _expect(self, word: str) -> None:
        if not self._match_text_seq(word):
            self.raise_error(f"={word} is expected here in MATCH_RECOGNIZE")

    def _parse_item_named(self, clause: str) -> exp.Expr | None:
        value = self._parse_disjunction()
        if value is None:
            return None
        if not self._match(TokenType.ALIAS):
            self.raise_error(f"=each value of {clause} needs a name: write LAST(A.x) AS name", self._prev)
        name = self._parse_id_var(any_token=True)
        if name is None:
            self.raise_error("=a name is expected after AS", self._prev)
        found: exp.Expr = self.expression(exp.Alias(this=value, alias=name))
        return found

    def _parse_rows_per_match(self) -> dict[str, bool]:
        if self._match_text_seq("ONE", "ROW"):
            self._expect_words("PER", "MATCH")
            return {}
        if not self._match_text_seq("ALL", "ROWS"):
            return {}
        self._expect_words("PER", "MATCH")
        for words, meaning in _ROWS.items():
            if self._match_text_seq(*words):
                return {"every_row": True, "empty": meaning != "no empty", "unmatched": meaning == "unmatched"}
        return {"every_row": True, "empty": True}

    def _expect_words(self, *words: str) -> None:
        if not self._match_text_seq(*words):
            self.raise_error(f"={' '.join(words)} is expected here")

    def _parse_skip(self) -> list[Any]:
        """What is skipped to: ``past last row``, ``next row``, or ``first`` or ``last`` with a name."""
        self._expect_words("SKIP")
        if self._match_text_seq("PAST", "LAST", "ROW"):
            return ["past last row"]
        if not self._match_text_seq("TO"):
            self.raise_error("=write SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST A, TO LAST A or TO A")
        if self._match_text_seq("NEXT", "ROW"):
            return ["next row"]
        word = "first" if self._match_text_seq("FIRST") else "last"
        if word == "last":
            self._match_text_seq("LAST")
        return [word, self._parse_variable()]

    def _parse_variable(self) -> exp.Expr:
        name = self._parse_id_var(any_token=True)
        if name is None:
            self.raise_error("=the name of a row pattern variable is expected here")
        found: exp.Expr = name
        return found

    def _parse_pattern_text(self) -> exp.Expr | None:
        start = self._curr.start if self._curr else 0
        if not self._match(TokenType.L_PAREN):
            self.raise_error("=a row pattern in parentheses is expected here")
        found: exp.Expr | None = self._parse_string()
        if found is None or not self._match(TokenType.R_PAREN):
            self.raise_error("=a row pattern in parentheses is expected here")
        assert found is not None
        found.meta["start"] = start + 1
        return found

    def _parse_subset(self) -> exp.Expr:
        name = self._parse_variable()
        if not self._match(TokenType.EQ) or not self._match(TokenType.L_PAREN):
            self.raise_error("=write SUBSET U = (A, B)")
        members = self._parse_csv(self._parse_variable)
        if not self._match(TokenType.R_PAREN):
            self.raise_error("=write SUBSET U = (A, B)")
        found: exp.Expr = self.expression(exp.Alias(this=exp.Tuple(expressions=members), alias=name))
        return found

    def _parse_definition(self) -> exp.Expr:
        name = self._parse_variable()
        if not self._match(TokenType.ALIAS):
            self.raise_error("=write DEFINE A AS condition", self._prev)
        condition = self._parse_disjunction()
        if condition is None:
            self.raise_error("=a condition is expected here", self._prev)
        found: exp.Expr = self.expression(exp.Alias(this=condition, alias=name))
        return found
