"""Spark's texts, read by Spark's rules before any parser sees them.

sqlglot's idea of an escape is not Spark's, and a parser that misreads a quote can be led to read data as code.
So the first pass is ours: it walks the text once, takes out every quoted text and puts a short placeholder in its
place. What the parser then sees holds no text from the user but names, numbers and operators.

Spark's rules (ANSI mode, double quotes are texts): ``\\n \\t \\r \\b \\0 \\Z`` are control characters, ``\\uXXXX`` and
``\\UXXXXXXXX`` code points, ``\\ooo`` with a first digit 0 or 1 an octal code, ``\\%`` and ``\\_`` stay as they are for
LIKE, any other escaped character is itself; a doubled quote is one quote; ``r'…'`` has no escapes; ``X'…'`` is binary.

A row pattern, ``PATTERN (A B{2,}?)`` of a MATCH_RECOGNIZE, is taken out like a quoted text: its marks mean nothing
elsewhere.

Invariant: outside quotes there is no comment, no ``;``, and no ``{``: each is refused where it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.base.errors import ExpressionError

__all__ = ["Scanned", "closing_quote", "gap_length", "row_patterns", "scan", "text_prefix", "text_value"]

_CONTROL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_QUOTES = ("'", '"')
_PLAIN = re.compile(r"""[^'"`\-/;{:]+""")
_SPACED = re.compile(r"(?<![\w`.])[xX]\s+\Z")  # as in X 'FF'
_COMMENT = re.compile(r"/\*|\*/")
_PATTERN = re.compile(r"(?<!\w)(?:(MATCH_RECOGNIZE)(?!\w)|PATTERN\s*\()", re.IGNORECASE)
_FORBIDDEN = {
    "--": "comments are not allowed in an expression",
    "/*": "comments are not allowed in an expression",
    ";": "one expression is expected, without `;`",
    "{": "`{` has no meaning in an expression",
}


@dataclass(frozen=True, slots=True)
class Scanned:
    """``sql`` with placeholders, the ``texts`` behind them, and the way back to positions in the original."""

    sql: str
    texts: dict[str, str | bytes]
    shifts: tuple[tuple[int, int], ...]
    # The texts that were written in several pieces side by side.
    pieced: frozenset[str] = frozenset()

    def original(self, position: int) -> int:
        """The position in the user's text of a position in ``sql``."""
        start, source = max((s for s in self.shifts if s[0] <= position), default=(0, 0))
        return source + position - start


def _decoded(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    return _CONTROL.get(other, other)


def closing_quote(text: str, opening: int, *, raw: bool) -> int:
    """The index of the quote that closes the one at ``opening``."""
    quote, at = text[opening], opening + 1
    while at < len(text):
        if text[at] == "\\" and not raw and quote != "`":
            at += 2
        elif text[at] != quote:
            at += 1
        elif not raw and text[at + 1 : at + 2] == quote:
            at += 2
        else:
            return at
    raise ExpressionError.syntax(text, f"the {quote} that opens here is never closed", opening)


def text_value(text: str, opening: int, closing: int, *, prefix: str) -> str | bytes:
    """What a quoted text means: its escapes decoded, or its bytes."""
    inner = text[opening + 1 : closing]
    if prefix == "x":
        if not re.fullmatch("[0-9a-fA-F]*", inner):
            raise ExpressionError.syntax(text, "X'…' holds hexadecimal digits only", opening - 1)
        return bytes.fromhex(inner if len(inner) % 2 == 0 else "0" + inner)
    if prefix == "r":
        return inner
    quote = text[opening]
    # A doubled quote is one quote, but only where it is not itself escaped: one pass decides both.
    parts = re.split(rf"(\\.|{quote}{quote})", inner, flags=re.DOTALL)
    joined = "".join(f"\\{quote}" if p == quote * 2 else p for p in parts)
    try:
        value = _ESCAPE.sub(_decoded, joined)
        value.encode()
    except (ValueError, OverflowError):
        raise ExpressionError.syntax(text, "the text holds an escape that is no Unicode character", opening) from None
    return value


def scan(text: str, *, query: bool = False) -> Scanned:
    """Take the quoted texts out of an expression, and the comments and the last ``;`` out of a ``query``.

    >>> scanned = scan(r"name = 'it\\'s' AND a > 1")
    >>> scanned.sql, scanned.texts
    ("name =  'q0'  AND a > 1", {'q0': "it's"})
    """
    out: list[str] = []
    texts: dict[str, str | bytes] = {}
    shifts = [(0, 0)]
    length = at = 0
    after_text = False
    pieced: set[str] = set()
    patterns = dict(row_patterns(text)) if query else {}
    while at < len(text):
        char, quoted = text[at], at in patterns or text[at] in _QUOTES
        if at in patterns:
            key, end = f"q{len(texts)}", patterns.pop(at)
            texts[key], piece, after_text = text[at:end], f" '{key}' ", False
            shifts.append((length + 1, at))
            at = end
        elif quoted:
            prefix = text_prefix(text, at)
            if prefix:
                kept = out[-1].rstrip()[:-1]
                length -= len(out[-1]) - len(kept)
                out[-1] = kept
            closing = closing_quote(text, at, raw=bool(prefix))
            value, key = text_value(text, at, closing, prefix=prefix), f"q{len(texts)}"
            before = texts.get(f"q{len(texts) - 1}") if after_text else None
            if isinstance(before, str) and isinstance(value, str):
                # 'a' 'b' is one text.
                key, piece = f"q{len(texts) - 1}", ""
                value = before + value
                pieced.add(key)
            else:
                piece = f" '{key}' "
            texts[key] = value
            # The blank before the placeholder is nobody's: the quote, or its prefix, is where the text begins.
            shifts.append((length + bool(piece), at - len(prefix)))
            at, after_text = closing + 1, True
        elif char == "`":
            closing = closing_quote(text, at, raw=False)
            piece, at, after_text = text[at : closing + 1], closing + 1, False
        else:
            gap = gap_length(text, at) if query else 0
            for mark, why in _FORBIDDEN.items():
                if text.startswith(mark, at) and not gap:
                    said = why.replace("an expression", "a query").replace("expression", "query") if query else why
                    raise ExpressionError.syntax(text, said, at)
            plain = _PLAIN.match(text, at, min((p for p in patterns if p > at), default=len(text)))
            piece = " " * gap if gap else plain.group() if plain else char
            # Between the pieces of a text may be blanks, and the prefix of the next piece.
            rest = (
                piece[:-1] if text_prefix(text, at + len(piece)) and text[at + len(piece) :][:1] in _QUOTES else piece
            )
            at, after_text = at + len(piece), after_text and (not rest or rest.isspace())
        out.append(piece)
        length += len(piece)
        if quoted:
            shifts.append((length, at))
    return Scanned("".join(out), texts, tuple(shifts), frozenset(pieced))


def row_patterns(text: str) -> list[tuple[int, int]]:
    """Where the row patterns of a query begin and end, without their parentheses.

    >>> query = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts PATTERN (A (B|C)*?) DEFINE A AS x = ')')"
    >>> [query[start:end] for start, end in row_patterns(query)]
    ['A (B|C)*?']
    """
    found: list[tuple[int, int]] = []
    if "match_recognize" not in text.lower():
        return found
    at, inside, depth, begun = 0, False, 0, -1
    while at < len(text):
        char = text[at]
        gap = gap_length(text, at)
        if gap or char in "'\"`":
            prefix = "" if gap or char == "`" else text_prefix(text, at)
            at = at + gap if gap else closing_quote(text, at, raw=bool(prefix)) + 1
        elif begun >= 0:
            depth += {"(": 1, ")": -1}.get(char, 0)
            if depth < 0:
                found.append((begun, at))
                inside, begun = False, -1
            at += 1
        elif match := _PATTERN.match(text, at):
            if match[1] is None and inside:
                begun, depth = match.end(), 0
            inside = inside or match[1] is not None
            at = match.end()
        else:
            at += 1
    return found


def gap_length(text: str, at: int) -> int:
    """How long the comment is that begins here, or the ``;`` that ends the query; 0 where there is neither."""
    if text.startswith("--", at):
        return (text.find("\n", at) if "\n" in text[at:] else len(text)) - at
    if text.startswith("/*", at):
        depth, end = 1, at + 2
        while depth and (mark := _COMMENT.search(text, end)):
            depth, end = depth + (1 if mark.group() == "/*" else -1), mark.end()
        if depth:
            raise ExpressionError.syntax(text, "the comment that opens here is never closed", at)
        return end - at
    return len(text) - at if text[at] == ";" and not text[at:].strip("; \t\r\n") else 0


def text_prefix(text: str, quote_at: int) -> str:
    """``r`` or ``x`` directly before a quote, when it is a word of its own."""
    if text[quote_at - 1 : quote_at].isspace():
        return "x" if _SPACED.search(text[max(0, quote_at - 40) : quote_at]) else ""
    before = text[max(0, quote_at - 2) : quote_at]
    if not before or before[-1].lower() not in "rx":
        return ""
    return "" if len(before) == 2 and (before[0].isalnum() or before[0] in "_`") else before[-1].lower()
