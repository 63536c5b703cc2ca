"""Names and texts as Spark SQL writes them, so that neither can become code."""

from __future__ import annotations

__all__ = ["quoted_name", "quoted_text"]


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
