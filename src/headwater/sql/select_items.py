"""The items of a query's outermost select list, by their places in the text: for errors about one of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.base.errors import SchemaError
from headwater.sql.tokens import Token, tokenize

__all__ = ["check_names", "items_of", "place_of_output"]

_ENDS = frozenset(
    [
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "QUALIFY",
        "WINDOW",
        "ORDER",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "LIMIT",
        "OFFSET",
        "LATERAL",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "MINUS",
    ]
)


def items_of(sql: str) -> list[tuple[int, int]]:
    """Where each item begins and ends; of several SELECTs that are united, those of the first.

    >>> text = "WITH x AS (SELECT 1) SELECT t.id, count(DISTINCT a, b) AS n, u.id FROM t"
    >>> [text[start:end] for start, end in items_of(text)]
    ['t.id', 'count(DISTINCT a, b) AS n', 'u.id']
    """
    found: list[list[Token]] = []
    inside = False
    before = ("", "")
    for token, depth in _outermost(sql):
        if depth == 0 and not inside and token.word == "SELECT":
            inside, before = True, ("", "SELECT")
            continue
        if not inside:
            continue
        if depth == 0 and _ends(token.word, before):
            break
        if depth == 0 and token.text == ",":
            found.append([])
        elif not (not found and token.word in ("DISTINCT", "ALL")):
            if not found:
                found.append([])
            found[-1].append(token)
        before = (before[1], token.word)
    return [(item[0].start, item[-1].end) for item in found if item]


def _ends(word: str, before: tuple[str, str]) -> bool:
    """Not the FROM of IS DISTINCT FROM, nor the EXCEPT of ``* EXCEPT (a)``."""
    if word == "FROM" and before[1] == "DISTINCT" and before[0] in ("IS", "NOT"):
        return False
    return word in _ENDS and not (word == "EXCEPT" and before[1] == "*")


def _outermost(sql: str) -> Iterator[tuple[Token, int]]:
    """Each token with the number of parentheses open around it; those around the whole query do not count."""
    tokens = list(tokenize(sql))
    while tokens and tokens[0].text == "(" and _closes(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    depth = 0
    for token in tokens:
        depth -= token.text == ")"
        yield token, depth
        depth += token.text == "("


def _closes(tokens: Sequence[Token]) -> int:
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return at
    return -1


def place_of_output(sql: str, number: int, columns: int) -> tuple[int, int] | None:
    """The item that the output column of this number comes from, of so many columns;
    None where the text does not show it.
    """
    items = items_of(sql)
    stars = [at for at, (start, end) in enumerate(items) if _is_star(sql[start:end])]
    if not stars:
        return items[number] if len(items) == columns else None
    if len(stars) > 1:
        return items[stars[0]]
    star, behind = stars[0], len(items) - stars[0] - 1
    if number < star:
        return items[number]
    return items[number - columns] if number >= columns - behind else items[star]


def _is_star(item: str) -> bool:
    return item.endswith("*") or "* EXCEPT" in " ".join(item.upper().split())


def check_names(names: Sequence[str], sql: str) -> None:
    """Raise if two columns of a query have one name, in whatever case, and show how to rename the second."""
    seen: dict[str, str] = {}
    for number, name in enumerate(names):
        first = seen.setdefault(name.lower(), name)
        if len(seen) == number + 1:
            continue
        place = place_of_output(sql, number, len(names))
        error = SchemaError.duplicate_columns([first] if first == name else [first, name])
        if place is None:
            raise error.placed_at(sql, None)
        error.hint = f"give one of them another name: {_renamed(sql[place[0] : place[1]], name, set(names))}"
        raise error.placed_at(sql, place[0])


def _renamed(item: str, name: str, taken: set[str]) -> str:
    known = {n.lower() for n in taken}
    word = name.partition("(")[0]
    plain = word if word.isidentifier() else "value"
    number = next(n for n in range(2, len(known) + 3) if f"{plain}_{n}".lower() not in known)
    if _is_star(item):
        return f"in the place of {item} list the columns, one of them as `{name}` AS {plain}_{number}"
    tokens = list(tokenize(item))
    # An alias that is written out is replaced.
    aliased = len(tokens) > 1 and tokens[-2].word == "AS"
    value = item[: tokens[-2].start].rstrip() if aliased else item
    return f"{' '.join(value.split())} AS {plain}_{number}"
