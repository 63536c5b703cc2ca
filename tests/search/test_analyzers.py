"""Analyzers: every language that is offered works, and what the library refuses is an error that says what to write."""

from __future__ import annotations

import pytest
import tantivy

from headwater.base.errors import InputError
from headwater.lakehouse import Lake
from headwater.search.analyzers import LANGUAGES, STOPWORD_LANGUAGES, parse_analyzer

# Of each language two forms of a word, which have one stem, and a word that is left out.
FORMS = {
    "arabic": ("كتاب", "الكتاب", ""), "danish": ("hus", "huset", "og"), "dutch": ("boek", "boeken", "het"),
    "english": ("dispute", "disputing", "the"), "finnish": ("talo", "talot", "olla"),
    "french": ("continuer", "continuation", "les"), "german": ("Katze", "Katzen", "und"),
    "greek": ("άνθρωπος", "άνθρωποι", ""), "hungarian": ("ház", "házak", "hogy"), "italian": ("gatto", "gatti", "della"),
    "norwegian": ("hus", "huset", "og"), "portuguese": ("gato", "gatos", "para"), "romanian": ("carte", "cartea", ""),
    "russian": ("книга", "книги", "что"), "spanish": ("gato", "gatos", "para"), "swedish": ("hus", "huset", "och"),
    "tamil": ("புத்தகம்", "புத்தகங்கள்", ""), "turkish": ("kitap", "kitaplar", ""),
}  # fmt: skip


def test_the_languages_are_those_of_the_library() -> None:
    """All that some library of stemmers has: the next version may have more of them."""
    asked = {
        *LANGUAGES,
        "armenian",
        "basque",
        "catalan",
        "czech",
        "estonian",
        "hindi",
        "indonesian",
        "irish",
        "lithuanian",
    }
    asked |= {"nepali", "polish", "serbian", "yiddish", "esperanto", "persian", "ukrainian"}

    def works(language: str, name: str) -> bool:
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        try:
            builder.filter(getattr(tantivy.Filter, name)(language)).build()
        except ValueError:
            return False
        return True

    assert tuple(sorted(one for one in asked if works(one, "stemmer"))) == LANGUAGES == tuple(sorted(FORMS))
    assert tuple(sorted(one for one in asked if works(one, "stopword"))) == STOPWORD_LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_stems(language: str) -> None:
    one, other, _ = FORMS[language]
    analyzer = parse_analyzer(f"{language}_stem")
    assert str(analyzer).endswith(f" | lowercase | stemmer({language})") and parse_analyzer(str(analyzer)) == analyzer
    assert analyzer.terms(f"{one}, {other}!") == analyzer.terms(one) * 2 and len(analyzer.terms(one)) == 1


@pytest.mark.parametrize("language", STOPWORD_LANGUAGES)
def test_a_language_has_stop_words(language: str) -> None:
    one, _, left_out = FORMS[language]
    analyzer = parse_analyzer(f"simple | lowercase | stopwords({language})")
    assert analyzer.terms(f"{left_out} {one}") == [one.lower()]


@pytest.mark.parametrize(
    "code", ["ar", "da", "de", "el", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv", "ta", "tr"]
)
def test_every_code_is_a_language(code: str) -> None:
    assert parse_analyzer(f"{code}_stem").steps[-1][1][0] in LANGUAGES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("polish_stem", "one of the languages arabic"), ("pl_stem", "one of the languages arabic"),
        ("germann_stem", "did you mean german?"), ("simple | stemmer(yiddish)", "one of the languages arabic"),
        ("simple | stemmer(Danish)", "did you mean danish?"), ("simple | stemmer(en)", "did you mean english?"),
        ("simple | stopwords(turkish)", "one of the languages danish"), ("simple | stopwords(frensh)", "did you mean french?"),
        ("simple | stopwords(7)", "one of the languages danish"), ("simple | stemmer", "arguments of stemmer"),
        ("regex('(')", "Invalid regex"), ("regex('a{100000}{1000}')", "Invalid regex"),
        ("ngram(0, 3)", "between 1 and 32"), ("simple | remove_long(-1)", "arguments of remove_long"),
        ("simple | remove_long(99999999999999999999999)", "arguments of remove_long"), ("simple | nothing", "one of"),
        ("", "a tokenizer"), ("simple | split_compound", "words are needed"), ("simple | split_compound('')", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_made_says_what_to_write(text: str, words: str, lake: Lake) -> None:
    try:
        parse_analyzer(text)
    except InputError as e:
        assert words in str(e.hint) and repr(text) in str(e)
    else:
        assert text == "simple | split_compound('')", "an empty word splits nothing"
        return
    lake.write("t", [{"id": 1, "a": "text"}])
    with pytest.raises(InputError):
        lake.index("ix", "t", text={"a": {"analyzer": text}})
    assert not lake.artefacts()
