"""Groups in pieces: when the nodes of one name cannot be one box.

The problem: all edges point down, so a box is wholly above or wholly below another one that it is connected to. Groups
that are circuits within a circuit are like that by nature; those that someone drew around nodes need not be: an edge
may leave a group, and another one come back. The idea: where boxes would be in a cycle, the nodes are run through in an
order that obeys the edges and stays within a group for as long as it can, and each stay is a box.

Invariants: pieces, and the nodes in none, can be ordered such that every edge leads forward; where whole groups can,
they are not cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.observe.layers import topological

__all__ = ["in_pieces"]


def in_pieces(
    groups: Mapping[str, Sequence[int]], loose: Sequence[int], edges: Sequence[tuple[int, int]]
) -> list[tuple[str, frozenset[int]]]:
    """
    The groups as boxes, by name.

    Parameters
    ----------
    groups
        The nodes of each.
    loose
        The nodes in none.
    edges
        All edges between these nodes, from the upper to the lower.

    Examples
    --------
    >>> in_pieces({"a": [0, 1]}, [2], [(0, 1), (1, 2)])
    [('a', frozenset({0, 1}))]
    >>> in_pieces({"a": [0, 1]}, [2], [(0, 2), (2, 1)])
    [('a', frozenset({0})), ('a', frozenset({1}))]
    """
    whole = [(name, frozenset(own)) for name, own in groups.items()]
    unit = {node: k for k, node in enumerate(loose)}
    unit |= {node: len(loose) + k for k, (_, own) in enumerate(whole) for node in own}
    count = len(loose) + len(whole)
    between = {(unit[u], unit[v]) for u, v in edges if unit[u] != unit[v]}
    if len(topological(count, between)) == count:
        return whole
    return _stays({node: name for name, own in groups.items() for node in own}, sorted(unit), edges)


def _stays(
    group: Mapping[int, str], members: Sequence[int], edges: Sequence[tuple[int, int]]
) -> list[tuple[str, frozenset[int]]]:
    waiting = dict.fromkeys(members, 0)
    below: dict[int, list[int]] = {i: [] for i in members}
    for upper, lower in edges:
        waiting[lower] += 1
        below[upper].append(lower)
    ready = [i for i in members if not waiting[i]]
    stays: list[tuple[str | None, list[int]]] = []
    while ready:
        current = stays[-1][0] if stays else None
        node = next((i for i in ready if group.get(i) == current), ready[0])
        ready.remove(node)
        if not stays or group.get(node) != current:
            stays.append((group.get(node), []))
        stays[-1][1].append(node)
        for lower in below[node]:
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    return [(name, frozenset(own)) for name, own in stays if name is not None]
