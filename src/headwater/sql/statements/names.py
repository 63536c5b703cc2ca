"""Names of columns inside one string, as options of statements and table functions take them: ``hot = 'id,
`odd name`'``.
"""

from __future__ import annotations

from headwater.sql.statements.cursor import Cursor

__all__ = ["listed_names"]


def listed_names(text: str) -> tuple[str, ...]:
    """The names, which stand in backticks where they are no plain words.

    >>> listed_names("id, `odd, name`")
    ('id', 'odd, name')
    """
    cursor = Cursor(text)
    cursor.form = "the names with commas between, in backticks where they are no plain words"
    found = cursor.listed(lambda: cursor.identifier("a column"))
    cursor.end()
    return tuple(found)
