"""What may come next at the prompt, and in which colours: keywords, tables, columns and functions.

Names come from the lake and the catalogue of functions when they are first wanted; a lake that does not answer gives
none, since a prompt must not fail while somebody types. Columns are those of the tables that the text names so far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from headwater.base.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["COMMANDS", "KEYWORDS", "SqlCompleter", "SqlLexer"]

_KEYWORD_TEXT = """
    ADD ALL ALTER AND ANTI AS ASC BETWEEN BY CASE CAST CHANGE CHECK CLUSTER COLUMN COLUMNS COMMENT CONSTRAINT CREATE
    CROSS CUBE CURRENT DATE DELETE DESC DESCRIBE DETAIL DISTINCT DROP ELSE END ESCAPE EXCEPT EXISTS EXPLAIN EXTERNAL
    FALSE FILTER FIRST FOLLOWING FROM FULL FUNCTIONS GROUP GROUPING HAVING HISTORY IF ILIKE IN INNER INSERT INTERSECT
    INTERVAL INTO IS JOIN LAST LATERAL LEFT LIKE LIMIT LOCATION MATCHED MERGE NATURAL NOT NULL NULLS OF OFFSET ON
    OPTIMIZE OR ORDER OUTER OVER OVERWRITE PARTITION PARTITIONED PARTITIONS PRECEDING PROPERTIES QUALIFY RANGE RENAME
    REPLACE RESTORE RETAIN RIGHT RLIKE ROLLUP ROW ROWS SELECT SEMI SET SETS SHOW SOURCE TABLE TABLES TABLESAMPLE TARGET
    TBLPROPERTIES THEN TIMESTAMP TO TRUE TRUNCATE UNBOUNDED UNION UNSET UPDATE USING VACUUM VALUES VERSION VIEW WHEN
    WHERE WINDOW WITH ZORDER
    """
KEYWORDS = tuple(_KEYWORD_TEXT.split())
COMMANDS = {
    "\\?": "what can be typed here",
    "\\d": "the tables, or the columns of one: \\d orders",
    "\\engine": "who computes the rows: duckdb, datafusion or spark",
    "\\format": "how rows are printed: table, json, jsonl or csv",
    "\\timing": "say how long statements take, or stop saying it",
    "\\q": "leave (so does Ctrl-D)",
}
ENGINES = ("duckdb", "datafusion", "spark")
PROMPT_FORMATS = ("table", "json", "jsonl", "csv")

_WORD = re.compile(r"[\w.]*$")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_TOKENS = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>'(?:\\.|[^'\\])*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|`[^`]*(?:`|\Z))
      | (?P<number>\b[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?\b)
      | (?P<parameter>:[A-Za-z_]\w*)
      | (?P<word>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)
_STYLES = {
    "comment": "ansibrightblack italic",
    "string": "ansigreen",
    "number": "ansimagenta",
    "parameter": "ansiyellow",
    "keyword": "bold ansiblue",
}


@lru_cache(maxsize=1)
def _functions() -> tuple[str, ...]:
    from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS

    return tuple(sorted({name for name in (*FUNCTIONS, *AGGREGATES) if name.isidentifier()}))


class SqlCompleter(Completer):
    """Completes the word before the cursor; `forget` makes it look at the lake again."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._tables: list[str] | None = None
        self._columns: dict[str, list[str]] = {}

    def forget(self) -> None:
        """Tables may have come, gone or changed."""
        self._tables, self._columns = None, {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("\\"):
            yield from self._commands(before)
            return
        found = _WORD.search(before)
        word = found.group() if found else ""
        if not word and not complete_event.completion_requested:
            return
        head = before[: len(before) - len(word)].rstrip().upper()
        tables = self.tables()
        names_tables = head.endswith(("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE", "OPTIMIZE", "VACUUM"))
        if names_tables:
            yield from _matching(word, tables, "table")
        if word:
            yield from _matching(word.rpartition(".")[2], self._columns_of(document.text), "column")
            if not names_tables:
                yield from _matching(word, tables, "table")
            yield from _matching(word, KEYWORDS, "keyword", case=str.upper if word[:1].isupper() else str.lower)
            yield from _matching(word, _functions(), "function")

    def tables(self) -> list[str]:
        """The tables and views of the lake, as far as it answers."""
        if self._tables is None:
            try:
                self._tables = self._lake.catalog.names()
            except HeadwaterError:
                self._tables = []
        return self._tables

    def _columns_of(self, text: str) -> list[str]:
        named = {name.lower() for name in _NAME.findall(text)}
        found: dict[str, None] = {}
        for table in self.tables():
            if table.lower() not in named:
                continue
            if table not in self._columns:
                try:
                    self._columns[table] = list(self._lake.table(table).schema.names)
                except HeadwaterError:
                    self._columns[table] = []
            found.update(dict.fromkeys(self._columns[table]))
        return list(found)

    def _commands(self, before: str) -> Iterable[Completion]:
        command, space, argument = before.partition(" ")
        if not space:
            for name, meaning in COMMANDS.items():
                if name.startswith(command):
                    yield Completion(name, start_position=-len(command), display_meta=meaning)
            return
        choices = {"\\d": self.tables(), "\\engine": ENGINES, "\\format": PROMPT_FORMATS}.get(command, ())
        yield from _matching(argument, choices, "")


def _matching(
    word: str, names: Sequence[str], kind: str, *, case: Callable[[str], str] | None = None
) -> Iterable[Completion]:
    for name in names:
        if name.lower().startswith(word.lower()):
            yield Completion(case(name) if case else name, start_position=-len(word), display_meta=kind)


class SqlLexer(Lexer):
    """Colours for what is typed; the whole text is looked at, since a text or a comment may run over lines."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = _coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


def _coloured(text: str) -> list[StyleAndTextTuples]:
    lines: list[StyleAndTextTuples] = [[]]

    def add(style: str, piece: str) -> None:
        for index, part in enumerate(piece.split("\n")):
            if index:
                lines.append([])
            if part:
                lines[-1].append((style, part))

    at = 0
    for token in _TOKENS.finditer(text):
        add("", text[at : token.start()])
        kind = token.lastgroup or ""
        if kind == "word" and token.group().upper() in _KEYWORDS:
            kind = "keyword"
        add(_STYLES.get(kind, ""), token.group())
        at = token.end()
    add("", text[at:])
    return lines


_KEYWORDS = frozenset(KEYWORDS)
