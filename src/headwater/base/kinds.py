"""Kinds: what people and statements call the kinds of derived artefacts.

Rooms below those of the kinds have to name them in messages ("`spend` is a materialized view: append() cannot change
it") and in statements (``REFRESH MATERIALIZED VIEW``), and know nothing else of them. So the words of each kind stand
here, once, by the name under which it is recorded. A kind that is not declared, because a newer version of Headwater
made it, is called by that name.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ARTEFACT", "VIEW", "KindWords", "declare_words", "declared_words", "words_of"]


@dataclass(frozen=True, slots=True)
class KindWords:
    """The words for one kind of derived artefact."""

    name: str
    """Its name in the catalog, and the lake's method that opens one: ``lake.view("spend")``."""
    singular: str
    plural: str
    sql: str
    """What SQL statements call it: ``REFRESH MATERIALIZED VIEW``."""
    sql_plural: str
    """What statements call several of them: ``SHOW VIEWS``."""
    short: str = ""
    """What it is called once it is clear which kind is meant; by default the singular."""
    shorts: str = ""
    """The plural of ``short``; by default the plural."""

    by_function: bool = False
    """Whether it is defined by a function in Python, and no statement makes one."""

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


_declared: dict[str, KindWords] = {}


def declare_words(words: KindWords) -> None:
    """Let a kind be called so."""
    _declared[words.name] = words


def words_of(name: str) -> KindWords:
    """What a kind is called.

    >>> words_of("hologram").sql
    'HOLOGRAM'
    """
    plain = name.replace("_", " ")
    return _declared.get(name) or KindWords(name, plain, f"{plain}s", plain.upper(), f"{plain.upper()}S")


def declared_words() -> list[KindWords]:
    """The words of all kinds that are declared."""
    return list(_declared.values())


ARTEFACT = KindWords("derived", "derived artefact", "derived artefacts", "ARTEFACT", "ARTEFACTS")
"""The words where the kind is not known, or there are several."""

VIEW = KindWords(
    "view", "materialized view", "materialized views", "MATERIALIZED VIEW", "VIEWS", short="view", shorts="views"
)
declare_words(VIEW)
declare_words(KindWords("export", "export", "exports", "EXPORT", "EXPORTS"))
declare_words(KindWords("online", "online table", "online tables", "ONLINE TABLE", "ONLINE TABLES"))
declare_words(
    KindWords(
        "index", "search index", "search indexes", "SEARCH INDEX", "SEARCH INDEXES", short="index", shorts="indexes"
    )
)
declare_words(
    KindWords("features", "feature table", "feature tables", "FEATURE TABLE", "FEATURE TABLES", by_function=True)
)
