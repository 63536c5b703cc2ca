"""A tree of a query as an s-expression, for fixtures that can be read."""

from __future__ import annotations

import json

from headwater.search.language import (
    And,
    Boost,
    Everything,
    Exists,
    Fuzzy,
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


def shown(node: Node) -> str:
    match node:
        case And():
            return _form("and", *map(shown, node.children))
        case Or():
            return _form("or", *map(shown, node.children))
        case Not():
            return _form("not", shown(node.child))
        case Boost():
            return _form("boost", f"{node.factor:g}", shown(node.child))
        case Occurs():
            rows = [("must", node.must), ("should", node.should), ("must-not", node.must_not)]
            return _form("occurs", *(_form(name, *map(shown, some)) for name, some in rows if some))
        case Everything():
            return "(everything)"
        case Exists():
            return _form("exists", node.field)
        case _:
            return _form(type(node).__name__.lower(), *([node.field] if node.field else []), *_facts(node))


def _facts(leaf: Term | Phrase | Wildcard | Fuzzy | Regex | Range | OneOf) -> list[str]:
    match leaf:
        case Term():
            return [_text(leaf.text)]
        case Phrase():
            return [_text(leaf.text), *([f"slop={leaf.slop}"] if leaf.slop else []), *_prefix(leaf)]
        case Wildcard():
            return [part.value if isinstance(part, Marker) else _text(part) for part in leaf.pattern]
        case Fuzzy():
            return [_text(leaf.text), f"distance={leaf.distance}", *_prefix(leaf)]
        case Regex():
            return [f"/{leaf.pattern}/"]
        case Range():
            lower = "…" if leaf.lower is None else f"{'≥' if leaf.include_lower else '>'}{_text(leaf.lower)}"
            upper = "…" if leaf.upper is None else f"{'≤' if leaf.include_upper else '<'}{_text(leaf.upper)}"
            return [lower, upper]
        case OneOf():
            return [_text(value) for value in leaf.values]


def _prefix(leaf: Phrase | Fuzzy) -> list[str]:
    return ["prefix"] if leaf.prefix else []


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _form(*parts: str) -> str:
    return f"({' '.join(parts)})"
