"""Selection: which nodes are meant by ``spend``, ``+spend``, ``spend+``, ``tag:daily`` and ``view:*``.

As dbt has it: a plus before a node adds all that it reads, directly or through others, and one behind it all that reads
it. A pattern with ``*`` and ``?`` means every node whose name it fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from headwater.base.errors import ProjectError
from headwater.pipeline.graph import Graph

__all__ = ["selected"]

_FORM = re.compile(r"(\+?)(?:(tag|kind):)?([^+:]+)(\+?)")


def selected(graph: Graph, selectors: Sequence[str], where: str, *, sources: bool = False) -> list[str]:
    """The kept nodes that are meant, and with ``sources`` the sources too, each after those that it reads; all
    of them without a selector.
    """
    every = list(graph.nodes) if sources else graph.kept
    if not selectors:
        return every
    found: set[str] = set()
    for text in selectors:
        found |= _one(graph, text, where, sources=sources)
    return [name for name in every if name in found]


def _one(graph: Graph, text: str, where: str, *, sources: bool) -> set[str]:
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise ProjectError.bad_selector(text, where)
    before, method, name, after = form.groups()
    if method is not None:
        known = {tag for node in graph.nodes.values() for tag in (node.tags if method == "tag" else (node.kind,))}
        named = [n for n, node in graph.nodes.items() if name in (node.tags if method == "tag" else (node.kind,))]
        if not named:
            raise ProjectError.unknown_node(name, sorted(known), where)
    elif re.search(r"[*?\[]", name):
        named = [n for n in graph.nodes if fnmatchcase(n.lower(), name.lower())]
        if not named:
            raise ProjectError.unknown_node(name, list(graph.nodes), where)
    else:
        named = [n for n in graph.nodes if n.lower() == name.lower()]
        if not named:
            raise ProjectError.unknown_node(name, list(graph.nodes), where)
    sources_alone = all(graph.nodes[n].is_source for n in named) and not after
    if sources_alone and method is None and not sources:
        raise ProjectError.bad_selector(f"{text}, a source, which is not refreshed; write {name}+", where)
    found = set(named)
    if before:
        found |= graph.upstream(named)
        found |= {read for name in found for read in graph.reads(name)}
    if after:
        found |= graph.downstream(named)
    return found
