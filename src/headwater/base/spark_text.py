"""Names and texts as Spark SQL writes them, so that neither can become code."""

from __future__ import annotations

__all__ = ["plain_name", "quoted_name", "quoted_text", "text_literal"]


def quoted_name(name: str) -> str:
    """A name as Spark SQL takes any name.

    >>> quoted_name("a`b c")
    '`a``b c`'
    """
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """A text as a constant.

    >>> print(quoted_text("it's"))
    'it\\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def plain_name(name: str) -> str:
    """A name in backticks, where it needs them."""
    # Before a type, CONSTRAINT would begin a rule.
    plain = name.isascii() and name.isidentifier() and name.lower() != "constraint"
    return name if plain else f"`{name.replace('`', '``')}`"


def text_literal(text: str) -> str:
    """A text in quotes.

    >>> print(text_literal("it's"))
    'it\\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"
