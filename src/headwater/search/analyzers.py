"""Analyzers: how the text of a field becomes terms.

An analyzer is named in an index's definition, as ``default``, ``en_stem`` or as a chain such as
``whitespace | lowercase | ascii_fold | stemmer(german) | remove_long(40)``: a tokenizer, then filters. The chain is
kept in the definition and registered again whenever an index is opened, because the files of the library hold only its
name.

``default`` splits on every character that is not alphanumeric and lowers each character by itself. That makes it
*char-wise*: lowering a piece of text gives a piece of the lowered text, and tokens do not depend on what lies beyond
their borders. Standard predicates (`predicates`) may use an index for candidates only where this holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headwater.base.errors import HeadwaterError, InputError
from headwater.base.errors.wording import did_you_mean

__all__ = ["LANGUAGES", "STOPWORD_LANGUAGES", "Analyzer", "parse_analyzer"]

LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian", "norwegian",
    "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
)  # fmt: skip
"""Those of which the library has a stemmer."""
STOPWORD_LANGUAGES = (
    "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese",
    "russian", "spanish", "swedish",
)  # fmt: skip
"""Those of which it has a list of stop words."""
_CODES = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
_NAMED = {
    "default": "simple | lowercase",
    "simple": "simple | lowercase",
    "whitespace": "whitespace | lowercase",
    "raw": "raw",
    "ascii": "simple | lowercase | ascii_fold",
    "trigram": "ngram(3, 3) | lowercase",
}
_MARKED_WORDS = r"regex('[\p{L}\p{M}\p{N}]+')"
"""Tamil has signs inside its words that are no letters, at which ``simple`` would take them apart."""
_STEP = re.compile(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_CHAR_WISE = {("simple", "lowercase"), ("whitespace", "lowercase"), ("simple",), ("whitespace",)}


@dataclass(frozen=True, slots=True)
class Analyzer:
    """A tokenizer and filters, each with its arguments."""

    steps: tuple[tuple[str, tuple[Any, ...]], ...]

    @property
    def is_char_wise(self) -> bool:
        """Whether pieces of text give pieces of terms, so that the index can find candidates for `contains`."""
        return tuple(name for name, _ in self.steps) in _CHAR_WISE

    @property
    def lowers(self) -> bool:
        """Whether terms are in lower case."""
        return any(name == "lowercase" for name, _ in self.steps)

    def build(self) -> Any:
        """The library's analyzer."""
        return _built(self)

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        found: list[str] = _built(self).analyze(text)
        return found

    def __str__(self) -> str:
        return " | ".join(name if not given else f"{name}({_listed(given)})" for name, given in self.steps)


@lru_cache(maxsize=256)
def parse_analyzer(text: str) -> Analyzer:
    """An analyzer by its name, by the code of a language with ``_stem``, or as a chain.

    >>> str(parse_analyzer("en_stem"))
    'simple | lowercase | stemmer(english)'
    >>> parse_analyzer("whitespace | ascii_fold | remove_long(40)").terms("Café au lait")
    ['Cafe', 'au', 'lait']
    """
    found = re.fullmatch(r"([a-z]+)_stem", text.strip())
    if found:
        language = _CODES.get(found[1], found[1])
        if language not in LANGUAGES:
            raise InputError.bad_argument("analyzer", text, _known_languages(language, LANGUAGES))
        words = _MARKED_WORDS if language == "tamil" else "simple"
        return parse_analyzer(f"{words} | lowercase | stemmer({language})")
    chain = _NAMED.get(text.strip(), text)
    steps = [_step(piece, first=not number, whole=text) for number, piece in enumerate(_pieces(chain))]
    made = Analyzer(tuple(steps))
    with _typed(text, f"an analyzer that the library can make of {made}"):
        _built(made)
    return made


@contextmanager
def _typed(whole: str, expected: str) -> Iterator[None]:
    """Give whatever the library raises a type, a panic too."""
    try:
        yield
    except HeadwaterError:
        raise
    except (TypeError, ValueError, OverflowError) as e:
        raise InputError.bad_argument("analyzer", whole, f"{expected}: {e}") from e
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise
        raise InputError.bad_argument("analyzer", whole, f"{expected}: {e}") from e


def _pieces(chain: str) -> list[str]:
    """The steps of a chain: a bar inside parentheses or quotes belongs to an argument."""
    return re.findall(r"(?:[^|(]|\((?:[^()']|'(?:[^']|'')*')*\))+", chain) or [chain]


def _step(piece: str, *, first: bool, whole: str) -> tuple[str, tuple[Any, ...]]:
    found = _STEP.fullmatch(piece)
    known = _TOKENIZERS if first else _FILTERS
    if found is None or found[1] not in known:
        role = "tokenizer" if first else "filter"
        names = f"; or by a name: {', '.join(_NAMED)}, en_stem" if first else ""
        raise InputError.bad_argument(
            "analyzer", whole, f"a {role} at {piece.strip()!r}: one of {', '.join(sorted(known))}{names}"
        )
    given = tuple(_argument(one) for one in re.findall(r"'(?:[^']|'')*'|[^,'\s][^,']*", found[2] or ""))
    with _typed(whole, f"other arguments of {found[1]}"):
        known[found[1]](*given)
    return found[1], given


def _argument(text: str) -> Any:
    text = text.strip()
    if re.fullmatch(r"\d+", text):
        return int(text)
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def _listed(given: tuple[Any, ...]) -> str:
    return ", ".join(
        str(one).lower() if isinstance(one, bool) else str(one) if isinstance(one, int) or one in LANGUAGES else
        "'" + str(one).replace("'", "''") + "'"
        for one in given
    )  # fmt: skip


@lru_cache(maxsize=256)
def _built(analyzer: Analyzer) -> Any:
    import tantivy

    (tokenizer, given), *filters = analyzer.steps
    builder = tantivy.TextAnalyzerBuilder(_TOKENIZERS[tokenizer](*given))
    for name, arguments in filters:
        builder = builder.filter(_FILTERS[name](*arguments))
    return builder.build()


def _ngram(least: int = 2, most: int = 3, prefix_only: bool = False) -> Any:
    import tantivy

    if not 1 <= least <= most <= 32:
        raise ValueError("lengths are between 1 and 32, the smaller one first")
    return tantivy.Tokenizer.ngram(least, most, prefix_only)


def _regex(pattern: str) -> Any:
    import tantivy

    return tantivy.Tokenizer.regex(str(pattern))


def _plain(kind: str, name: str) -> Any:
    def make() -> Any:
        import tantivy

        return getattr(getattr(tantivy, kind), name)()

    return make


def _of_language(name: str, known: Sequence[str]) -> Any:
    def make(language: str) -> Any:
        import tantivy

        if language not in known:
            raise ValueError(_known_languages(str(language), known))
        return getattr(tantivy.Filter, name)(language)

    return make


def _known_languages(asked: str, known: Sequence[str]) -> str:
    near = did_you_mean(_CODES.get(asked, asked), known)
    return f"{f'did you mean {near}? ' if near else ''}one of the languages {', '.join(known)}"


def _remove_long(length: int) -> Any:
    import tantivy

    return tantivy.Filter.remove_long(length)


def _words(name: str) -> Any:
    def make(*words: str) -> Any:
        import tantivy

        if not words:
            raise ValueError("words are needed")
        return getattr(tantivy.Filter, name)([str(word) for word in words])

    return make


_TOKENIZERS: dict[str, Any] = {
    "simple": _plain("Tokenizer", "simple"),
    "whitespace": _plain("Tokenizer", "whitespace"),
    "raw": _plain("Tokenizer", "raw"),
    "ngram": _ngram,
    "regex": _regex,
}
_FILTERS: dict[str, Any] = {
    "lowercase": _plain("Filter", "lowercase"),
    "ascii_fold": _plain("Filter", "ascii_fold"),
    "alphanum_only": _plain("Filter", "alphanum_only"),
    "stemmer": _of_language("stemmer", LANGUAGES),
    "stopwords": _of_language("stopword", STOPWORD_LANGUAGES),
    "without": _words("custom_stopword"),
    "split_compound": _words("split_compound"),
    "remove_long": _remove_long,
}
