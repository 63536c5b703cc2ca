r"""Writing a tree as a query: `render`, the inverse of `parse`.

``parse(render(tree)) == tree``, and the same with ``default="and"`` on both sides, for every tree that is at most
`MAX_DEPTH` high. Parentheses stand only where they are needed, and characters are escaped only where they would be read
as syntax.

>>> from headwater.search.language.tree import And, Or, Term
>>> render(And((Term(None, "C++"), Or((Term("lang", "a b"), Term(None, "OR"))))))
'C++ AND (lang:a\\ b OR \\OR)'
"""

from __future__ import annotations

import re

from headwater.search.language.clauses import Default
from headwater.search.language.tree import (
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
    Phrase,
    Range,
    Regex,
    Term,
    Wildcard,
)

__all__ = ["render"]

# Characters that end a word wherever they stand, and those that mean something at its beginning.
_ANYWHERE = re.compile(r'[\s\\()\[\]{}"^~:*?`]|&(?=&)|(?<=&)&|\|(?=\|)|(?<=\|)\|')
_AT_FIRST = ("+", "-", "!", "/", "<", ">", "'")
# Words that mean something where a clause begins.
_RESERVED = ("AND", "OR", "NOT", "IN")
_BARE = re.compile(r"[\w.:+\-]+", re.ASCII)
_PATH_PIECE = re.compile(r"\\.|[^\\]+", re.DOTALL)
_REGEX_PIECE = re.compile(r"\\.|/", re.DOTALL)


def render(node: Node, *, default: Default = "or") -> str:
    """A query that `parse`, with the same ``default``, reads as this tree."""
    beside = " " if default == "or" else " OR "
    written: list[str] = []
    waiting: list[Node | str] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            written.append(one)
        else:
            waiting.extend(reversed(_pieces(one, beside)))
    return "".join(written)


def _pieces(node: Node, beside: str) -> list[Node | str]:
    """What stands for a node: strings, and nodes that are still to be written.
    ``beside`` separates clauses with marks.
    """
    match node:
        case And():
            return _joined(" AND ", [_grouped(child, And, Or, Occurs) for child in node.children])
        case Or():
            return _joined(" OR ", [_grouped(child, Or, Occurs) for child in node.children])
        case Not():
            return ["NOT ", *_grouped(node.child, And, Or, Occurs, Not)]
        case Boost():
            return [*_grouped(node.child, And, Or, Occurs, Not, Boost), f"^{_number(node.factor)}"]
        case Occurs():
            marked = [("+", node.must), ("", node.should), ("-", node.must_not)]
            clauses = [[mark, *_grouped(child, And, Or, Occurs, Not)] for mark, some in marked for child in some]
            return _joined(beside, clauses)
        case _:
            return [_leaf(node)]


def _grouped(node: Node, *kinds: type[Node]) -> list[Node | str]:
    return ["(", node, ")"] if isinstance(node, kinds) else [node]


def _joined(separator: str, parts: list[list[Node | str]]) -> list[Node | str]:
    joined = parts[0]
    for part in parts[1:]:
        joined += [separator, *part]
    return joined


def _leaf(leaf: Leaf) -> str:
    match leaf:
        case Everything():
            return "*"
        case Exists():
            return f"{_field(leaf.field)}*"
    field = "" if leaf.field is None else _field(leaf.field)
    match leaf:
        case Term():
            return field + _word(leaf.text)
        case Phrase():
            slop = f"~{leaf.slop}" if leaf.slop else ""
            return f"{field}{_quoted(leaf.text)}{slop}{'*' if leaf.prefix else ''}"
        case Wildcard():
            parts = (part.value if isinstance(part, Marker) else _escaped(part) for part in leaf.pattern)
            return field + _opened("".join(parts))
        case Fuzzy():
            return f"{field}{_word(leaf.text)}~{leaf.distance}{'*' if leaf.prefix else ''}"
        case Regex():
            pattern = _REGEX_PIECE.sub(lambda found: "\\/" if found.group() == "/" else found.group(), leaf.pattern)
            return f"{field}/{pattern}/"
        case Range():
            opening, closing = "[" if leaf.include_lower else "{", "]" if leaf.include_upper else "}"
            return f"{field}{opening}{_bound(leaf.lower)} TO {_bound(leaf.upper)}{closing}"
        case OneOf():
            return f"{field}IN [{' '.join(map(_value, leaf.values))}]"


def _field(path: str) -> str:
    # A path has backslashes only before dots and backslashes, and there they stand in a query as well.
    pieces = (piece if piece[0] == "\\" else _escaped(piece) for piece in _PATH_PIECE.findall(path))
    name = _opened("".join(pieces))
    return f"\\{name}:" if name == "_exists_" else f"{name}:"


def _word(text: str) -> str:
    return f"\\{text}" if text in _RESERVED else _opened(_escaped(text))


def _opened(word: str) -> str:
    return f"\\{word}" if word.startswith(_AT_FIRST) else word


def _escaped(text: str) -> str:
    return _ANYWHERE.sub(r"\\\g<0>", text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _value(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _bound(text: str | None) -> str:
    if text is None:
        return "*"
    return _quoted(text) if text == "TO" else _value(text)


def _number(factor: float) -> str:
    return repr(factor).removesuffix(".0")
