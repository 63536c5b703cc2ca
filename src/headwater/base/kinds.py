"""What people call a kind of derived artefact: in prose, in SQL, and as a method of the lake.

An error about a view, a search index or an online table says the same thing with other nouns. Those nouns are one
value, so that an error takes a kind and no error is written once per kind. A kind is described here by words only: how
it is opened, refreshed and dropped is known to whoever registers it.

>>> VIEW.sql, VIEW.counted(2)
('MATERIALIZED VIEW', 'materialized views')
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["VIEW", "KindWords"]


@dataclass(frozen=True, slots=True)
class KindWords:
    """The words for one kind of derived artefact."""

    name: str
    """Its name in the catalog, and the lake's method that opens one: ``lake.view("spend")``."""
    singular: str
    plural: str
    sql: str
    """What SQL statements call it: ``REFRESH MATERIALIZED VIEW``."""
    short: str = ""
    """What it is called once it is clear which kind is meant; by default the singular."""
    shorts: str = ""
    """The plural of ``short``; by default the plural."""

    @property
    def one(self) -> str:
        """The singular with its article."""
        return f"{'an' if self.singular[0] in 'aeiou' else 'a'} {self.singular}"

    @property
    def it(self) -> str:
        return self.short or self.singular

    @property
    def them(self) -> str:
        return self.shorts or self.plural

    def counted(self, number: int) -> str:
        """The singular or the plural."""
        return self.singular if number == 1 else self.plural


VIEW = KindWords("view", "materialized view", "materialized views", "MATERIALIZED VIEW", short="view", shorts="views")
