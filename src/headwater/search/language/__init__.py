r"""The language of search queries: from what people type to a typed tree, and back.

People come from Lucene, Elasticsearch, Quickwit and tantivy, and type what worked there. This package reads that
syntax without knowing any index: which fields exist and how their words are analysed is decided by whoever compiles the
tree.

    card lost                   either word; both, with ``default="and"``
    "card lost"  "card lost"~2  a phrase, and one with up to two moves of a word; also 'card lost'
    "card lo"*                  a phrase whose last word is a prefix
    da*  *ta  d?ta  a\ b*       patterns: any characters, one character; ``\ `` is a space inside the word
    word~  word~1  word~1*      at most 2 (or 1) edits away; at the end, of a prefix
    /da(ta|y)/                  a regular expression; ``\/`` is a slash in it
    [a TO b]  {a TO b}  [a TO *}  a range, with or without its ends; ``*`` leaves an end open
    field:>5  field:(>=5 <9)    the same, after a field or in its group
    field: IN [a b "c d"]       one of these values (spaces or commas between them)
    field:*  _exists_:field     the field has a value
    *  *:*                      every row
    field:x  a.b:x  `a b`:x     in a field, at a path of JSON, in a field with any name
    field:(a OR b)              the field holds for the group, except where a clause names its own
    a AND b, a OR b, NOT a      also ``&&``, ``||``, ``!a``; in capitals, since `and` is a word to search for
    +a b -c                     a must match, c must not, and b only adds to the score
    a^2.5  (a b)^3              what counts more, or less
    \+ \" \: \* …               any character after a backslash is itself

**How operators combine.** NOT binds tighter than AND, AND tighter than clauses side by side, and those tighter than OR,
as in SQL: ``a OR b AND c`` is ``a OR (b AND c)``. Between clauses that stand side by side, Lucene's meaning holds: `+`
makes a clause a must, `-`, `!` and `NOT` make it a must-not, and the rest are optional if there is a must; else at
least one of them matches. OR means the same as standing side by side where one of the clauses has a `+` or `-`, so
``+a OR b`` is ``+a b`` and ``a OR -b`` is ``a -b``; with NOT it is boolean algebra, and ``a OR NOT b`` finds what lacks
b, too. In an AND, ``-a`` is ``NOT a``, and a `+` holds for all of it. With ``default="and"``, clauses side by side are
joined by AND.

Three things that other parsers read in silence are refused, because the silent meaning is rarely the one meant: a
mark that is set off by a space (``a - b``), a mark after a colon (``title:-draft``; a negative number is a value), and
a regular expression that goes on as a path does (``/usr/bin``).

In quotes, `*` and `?` are characters like any other ("is it lost?"); a pattern over several words is one word with
escaped spaces: ``hello*\ *world``.

The tree is described in `tree`; `parse` reads strictly, `parse_leniently` leaves out what cannot be read and says what
that was, and `render` writes a tree as a query. Reading takes linear time, and a tree is at most `MAX_DEPTH` high.
"""

from headwater.search.language.parser import parse, parse_leniently
from headwater.search.language.path import join_path, split_path
from headwater.search.language.rendering import render
from headwater.search.language.source import MAX_CLAUSES, MAX_DEPTH, MAX_LENGTH, Ignored
from headwater.search.language.tree import (
    ANY,
    ONE,
    And,
    Boost,
    Everything,
    Exists,
    Fuzzy,
    Leaf,
    Marker,
    Node,
    Not,
    Occurs,
    OneOf,
    Or,
    Pattern,
    Phrase,
    Range,
    Regex,
    Term,
    Wildcard,
    leaves,
    walk,
)

__all__ = [
    "ANY",
    "MAX_CLAUSES",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "ONE",
    "And",
    "Boost",
    "Everything",
    "Exists",
    "Fuzzy",
    "Ignored",
    "Leaf",
    "Marker",
    "Node",
    "Not",
    "Occurs",
    "OneOf",
    "Or",
    "Pattern",
    "Phrase",
    "Range",
    "Regex",
    "Term",
    "Wildcard",
    "join_path",
    "leaves",
    "parse",
    "parse_leniently",
    "render",
    "split_path",
    "walk",
]
