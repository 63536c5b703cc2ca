"""sqlglot's parser, held to Spark's grammar.

sqlglot reads all dialects and so forgives much: a comma too many, clauses in any order, the words of other databases. A
text that Spark refuses has to be refused here too, or it runs on one engine and fails on the next. Each override below
closes one such door, at the place where sqlglot opens it; what can only be seen in the tree is left to
`headwater.sql.misplaced`.

Two things are more than refusals. ``t@v3`` is Delta's short form of ``VERSION AS OF 3``, which sqlglot would read as an
alias; and a cast by ``::`` is marked, because its column has a name of its own.

Invariant: what this parser takes, Spark's parser takes too (``t@v3`` excepted, which is Delta's).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType  # type: ignore[attr-defined, unused-ignore]

from headwater.sql.call_grammar import CallGrammar
from headwater.sql.match_grammar import MatchGrammar

__all__ = ["CLAUSES", "StrictSpark"]

_TYPES = """
    BOOLEAN TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG FLOAT REAL DOUBLE DATE TIME TIMESTAMP TIMESTAMP_NTZ
    TIMESTAMP_LTZ STRING CHAR CHARACTER VARCHAR BINARY DECIMAL DEC NUMERIC VOID VARIANT ARRAY MAP STRUCT
"""
_TYPE_NAMES = frozenset(_TYPES.split())
_SIZED = ("CHAR", "CHARACTER", "VARCHAR")
_FOREIGN_TYPE_WORDS = {"PRECISION", "ZONE", "UNSIGNED"}
_PARTITIONS = (TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.PARTITION_BY)
# The order in which the clauses of a query stand; WINDOW may stand in two places.
CLAUSES = ("where", "group", "having", "qualify", "order", "cluster", "distribute", "sort", "limit", "offset")
_VERSION = re.compile(r"[vV]([0-9]+)")


class _Parser(MatchGrammar, CallGrammar):
    FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
    NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012
    ARRAY_CONSTRUCTORS: dict[str, Any] = {}  # noqa: RUF012
    ASSIGNMENT: dict[Any, Any] = {}  # noqa: RUF012
    SUPPORTS_TABLE_QUERY = True

    def parse(self, raw_tokens: list[Any], sql: str) -> Any:
        return super().parse(_plain_windows(raw_tokens), sql)

    # --- lists and names

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        found: Any = parse_method()
        items = [found]
        while self._match(sep):
            comma = self._prev
            found = parse_method()
            if found is None or items[-1] is None:
                self.raise_error("=a comma too many", comma)
            items.append(found)
        return [] if items == [None] else items

    def _parse_placeholder(self) -> exp.Expr | None:
        start = self._curr.start if self._curr else 0
        found: exp.Expr | None = super()._parse_placeholder()
        if found is not None:
            found.meta["start"] = start
        return found

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        mark = self._curr
        found: exp.Expr | None = super()._parse_alias(this, explicit)
        if isinstance(found, exp.Alias) and isinstance(found.args["alias"], exp.Placeholder | exp.Parameter):
            self.raise_error("=a name is expected here, not a parameter", mark)
        if mark and mark.token_type == TokenType.ALIAS and not isinstance(found, exp.Alias | exp.Aliases):
            self.raise_error("=a name is expected after AS", mark)
        return found

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.Expr | None:
        mark = self._curr
        found: exp.Expr | None = super()._parse_table_alias(alias_tokens)
        if found is not None and isinstance(found.this, exp.Placeholder | exp.Parameter):
            self.raise_error("=a name is expected here; a version is written VERSION AS OF 3, or t@v3", mark)
        if found is not None and found.this is None:
            self.raise_error("=a name is expected before the columns", mark)
        # Behind the name of a definition; behind any other alias nobody looks for it, so it is refused there.
        if found is not None and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
            levels = self._parse_number()
            if levels is None or not str(levels.this).isdecimal():
                self.raise_error("=a whole number is expected after MAX RECURSION LEVEL", self._prev)
            found.set("levels", levels)
        return found

    # --- FROM

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
        start = self._index
        found = super()._parse_table_parts(*args, **kwargs)
        if found is None or self._curr is None:
            return found
        if self._curr.token_type == TokenType.STAR:
            self.raise_error("=this is not expected behind a table")
        if kwargs.get("fast") and self._curr.text == "@":
            self._retreat(start)  # the slow way asks for the version
            return None
        return found

    def _parse_version(self) -> Any:
        """``@v3`` behind a table, or one of the longer forms."""
        mark, word = self._curr, self._next
        if mark is None or mark.text != "@" or self._prev.end + 1 != mark.start:
            found = super()._parse_version()
            if found is not None and "OF" not in [t.text.upper() for t in self._tokens[self._index - 4 : self._index]]:
                self.raise_error("=write VERSION AS OF 3 or TIMESTAMP AS OF '2024-01-31'", mark)
            return found
        match = _VERSION.fullmatch(word.text) if word is not None and word.start == mark.end + 1 else None
        if match is None:
            self.raise_error("=a version is written t@v3, or VERSION AS OF 3", mark)
            raise AssertionError("raise_error raises")
        self._advance(2)
        return exp.Version(this="VERSION", kind="AS OF", expression=exp.Literal.number(match[1]))

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        mark = self._curr
        found = super()._parse_join(*args, **kwargs)
        if found is None and mark is not None and mark.token_type == TokenType.COMMA and self._prev is mark:
            self.raise_error("=a comma too many", mark)
        if found is not None and isinstance(found.this, exp.Table) and found.this.args.get("joins"):
            self.raise_error("=put the inner join into parentheses", mark)
        return found

    def _parse_using_identifiers(self) -> Any:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error("Expecting (")
        return super()._parse_using_identifiers()

    # --- around a SELECT

    def _parse_with(self, *args: Any, **kwargs: Any) -> Any:
        start = self._index
        found = super()._parse_with(*args, **kwargs)
        again = [t for t, depth in self._since(start) if depth == 0 and t.token_type == TokenType.WITH][1:]
        if found is not None and again:
            self.raise_error("=a query has one WITH, with commas between its definitions", again[0])
        return found

    def _parse_cte(self) -> Any:
        mark = self._curr
        found = super()._parse_cte()
        if found is not None and found.args.get("materialized") is not None:
            self.raise_error("=MATERIALIZED is not expected here", mark)
        return found

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> Any:
        first = self._curr
        found = super()._parse_select_query(*args, **kwargs)
        if isinstance(found, exp.Select) and first is not None:
            found.meta["start"] = first.start
        if first is not None and first.token_type == TokenType.FROM and isinstance(found, exp.Select):
            star = found.expressions[0] if len(found.expressions) == 1 else None
            # A star that sqlglot added stands at no place behind the SELECT.
            if (
                isinstance(star, exp.Star)
                and not star.meta.get("start")
                and any(found.args.get(k) for k in CLAUSES[:4])
            ):
                self.raise_error("=SELECT is missing: write SELECT * FROM …", first)
        return found

    def _parse_limit(self, *args: Any, **kwargs: Any) -> Any:
        mark = self._curr
        found = super()._parse_limit(*args, **kwargs)
        if isinstance(found, exp.Limit) and found.args.get("offset") is not None:
            self.raise_error("=write LIMIT 10 OFFSET 20", mark)
        return found

    def _parse_offset(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._parse_offset(*args, **kwargs)
        if isinstance(found, exp.Offset) and self._prev.text.upper() in ("ROW", "ROWS"):
            self.raise_error("=write OFFSET 20", self._prev)
        return found

    def _parse_ordered(self, *args: Any, **kwargs: Any) -> Any:
        start = self._index
        found = super()._parse_ordered(*args, **kwargs)
        kinds = [t.token_type for t in self._tokens[start : self._index]]
        if (TokenType.ASC, TokenType.DESC) in itertools.pairwise(kinds):
            self.raise_error("=ASC and DESC exclude each other", self._prev)
        return found

    def _parse_star_op(self, *keywords: str) -> Any:
        """``* EXCEPT (a, b)``, and none of the other words that may stand behind a star elsewhere."""
        if "EXCEPT" not in keywords or self._curr.text.upper() != "EXCEPT":
            return None
        if self._next is None or self._next.token_type != TokenType.L_PAREN:
            return None
        return super()._parse_star_op("EXCEPT")

    # --- calls

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> Any:
        if self._match(TokenType.FILTER, advance=False):
            ahead = [t.token_type for t in self._tokens[self._index + 1 : self._index + 3]]
            if ahead[:1] == [TokenType.L_PAREN] and ahead[1:] != [TokenType.WHERE]:
                self.raise_error("=write FILTER (WHERE …)")
        return super()._parse_window(this, alias)

    def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        mark = self._curr
        if self._match(TokenType.CLUSTER_BY):  # for Spark the same as PARTITION BY
            partition, order = self._parse_csv(self._parse_disjunction), None
        else:
            partition, order = super()._parse_partition_and_order()
        if mark is not None and mark.token_type in _PARTITIONS and not partition:
            self.raise_error("=something is missing after this", mark)
        return partition, order

    def _parse_window_spec(self) -> Any:
        between = self._prev.token_type == TokenType.BETWEEN
        found = super()._parse_window_spec()
        if found["value"] is None:
            self.raise_error("=the bound of a frame is expected here")
        if between and not self._match(TokenType.AND, advance=False):
            self.raise_error("=AND is expected here")
        return found

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        start = self._index
        found = super()._parse_types(*args, **kwargs)
        if found is None or start == self._index:
            return found
        words = [t.text.upper() for t in self._tokens[start : self._index]]
        if self._is_suffix(start - 1):
            return found
        if words[0] == "INTERVAL" and self._tokens[start - 1].token_type in (TokenType.ALIAS, TokenType.DCOLON):
            return found
        if words[0] not in _TYPE_NAMES and isinstance(found, exp.DataType):
            self._retreat(start)  # a name, where names may stand
            return None
        if words[0] in _SIZED and words[1:2] != ["("]:
            self.raise_error(f"=the type needs a length: write {words[0]}(10), or STRING", self._tokens[start])
        if _FOREIGN_TYPE_WORDS & set(words):
            self.raise_error("=Spark has no type of this name", self._tokens[start])
        return found

    def _parse_interval(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._parse_interval(*args, **kwargs)
        if isinstance(found, exp.Add):  # INTERVAL 1 DAY 2 HOURS is one constant
            found.meta["together"] = True
        return found

    def _parse_if(self) -> Any:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error("=write IF(condition, value, other)")
        return super()._parse_if()

    def _double_colon(self, this: exp.Expr | None, to: exp.Expr) -> exp.Expr:
        found: exp.Expr = self.build_cast(strict=False, this=this, to=to)
        found.meta["suffix" if self._is_suffix(self._index - 2) else "colons"] = True
        return found

    def _is_suffix(self, at: int) -> bool:
        """``5L`` comes as three tokens, ``5 :: L``, that all lie on one place."""
        two = self._tokens[at - 1 : at + 1] if at > 0 else []
        return len(two) == 2 and two[1].token_type == TokenType.DCOLON and two[0].start == two[1].start


def _plain_windows(tokens: list[Any]) -> list[Any]:
    """``window`` begins a clause only in WINDOW w AS …; else it is a name, as in ``GROUP BY window(ts, '1 hour')``."""
    out = []
    for at, token in enumerate(tokens):
        found = token
        named = [t.token_type for t in tokens[at + 2 : at + 3]] == [TokenType.ALIAS]
        if token.token_type == TokenType.WINDOW and not named:
            place = (token.line, token.col, token.start, token.end)
            found = type(token)(TokenType.VAR, token.text, *place, token.comments)
        out.append(found)
    return out


def _placed(parser: Callable[[Any], tuple[str, Any]]) -> Callable[[Any], tuple[str, Any]]:
    """A parser of a clause that remembers where the clause began."""

    def parse(self: Any) -> tuple[str, Any]:
        start = self._curr.start
        key, found = parser(self)
        for part in found if isinstance(found, list) else [found]:
            if isinstance(part, exp.Expr):
                part.meta["clause"] = start
        return key, found

    return parse


_inherited = Spark.Parser
_Parser.NO_PAREN_FUNCTION_PARSERS = {
    name: parser for name, parser in _inherited.NO_PAREN_FUNCTION_PARSERS.items() if name in ("CASE", "IF")
}
_Parser.RANGE_PARSERS = {t: _inherited.RANGE_PARSERS[t] for t in (TokenType.BETWEEN, TokenType.IN, TokenType.IS)}
_Parser.COLUMN_OPERATORS = {
    **_inherited.COLUMN_OPERATORS,
    TokenType.DCOLON: lambda self, this, to: self._double_colon(this, to),
}
_Parser.QUERY_MODIFIER_PARSERS = {t: _placed(p) for t, p in _inherited.QUERY_MODIFIER_PARSERS.items()}


class _Tokenizer(Spark.Tokenizer):  # type: ignore[misc, valid-type, unused-ignore]
    KEYWORDS = {k: v for k, v in Spark.Tokenizer.KEYWORDS.items() if k not in ("ISNULL", "NOTNULL")}  # noqa: RUF012


class StrictSpark(Spark):
    """Spark's dialect without what other dialects brought into its parser."""

    Tokenizer = _Tokenizer
    Parser = _Parser
    tokenizer_class = _Tokenizer
    parser_class = _Parser
