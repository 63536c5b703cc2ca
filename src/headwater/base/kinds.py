"""Kinds: what people and statements call the kinds of derived artefacts.

Rooms below those of the kinds have to name them in messages ("`spend` is a materialized view: append() cannot change
it") and in statements (``REFRESH MATERIALIZED VIEW``), and know nothing else of them. So the words of each kind stand
here, once, by the name under which it is recorded. A kind that is not declared, because a newer version of Headwater
made it, is called by that name.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KindWords", "declare_words", "declared_words", "words_of"]


@dataclass(frozen=True, slots=True)
class KindWords:
    """What a kind of derived artefact is called.

    Parameters
    ----------
    name : str
        in records and logs, and in ``lake.<name>()``: "view"
    singular, plural : str
        in messages: "materialized view", "materialized views"
    sql : str
        in statements, between the verb and the name: "MATERIALIZED VIEW"
    sql_plural : str
        in ``SHOW``: "VIEWS"
    """

    name: str
    singular: str
    plural: str
    sql: str
    sql_plural: str


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


declare_words(KindWords("view", "materialized view", "materialized views", "MATERIALIZED VIEW", "VIEWS"))
declare_words(KindWords("export", "export", "exports", "EXPORT", "EXPORTS"))
