from __future__ import annotations

from itertools import combinations, permutations
from random import Random

from headwater.observe.columns import in_columns, spread, straight
from headwater.observe.layers import BOTTOM, TOP, Box, Layers, Link, in_layers

SMALL = Box(100, 40)


def layer_of(layers: Layers) -> list[int]:
    return [item.layer for item in layers.items if item.box != TOP]


def crossings(layers: Layers, rows: list[list[int]]) -> int:
    """How many segments cross, pair by pair."""
    place = {i: k for row in rows for k, i in enumerate(row)}
    return sum(
        (place[s.upper] - place[t.upper]) * (place[s.lower] - place[t.lower]) < 0
        for s, t in combinations(layers.segments, 2)
        if layers.items[s.upper].layer == layers.items[t.upper].layer
    )


def test_a_source_stands_just_above_its_consumer() -> None:
    links = [Link(0, 1), Link(1, 2), Link(3, 2)]
    assert layer_of(in_layers([SMALL] * 4, links)) == [0, 1, 2, 1]


def test_a_long_edge_has_a_point_in_every_layer() -> None:
    layers = in_layers([SMALL] * 4, [Link(0, 1), Link(1, 2), Link(2, 3), Link(0, 3)])
    points = [item.layer for item in layers.items if item.box == TOP]
    assert points == [1, 2]
    assert sorted(map(len, layers.rows)) == [1, 1, 2, 2]


def test_ports_have_layers_of_their_own() -> None:
    layers = in_layers([SMALL] * 2, [Link(TOP, 0), Link(0, 1), Link(1, BOTTOM), Link(TOP, 1)])
    assert layer_of(layers) == [1, 2]
    assert [len(row) for row in layers.rows] == [2, 2, 1, 1]


def test_crossed_edges_are_uncrossed() -> None:
    # Two pairs, listed crosswise; and a third layer that agrees with neither.
    links = [Link(0, 3), Link(1, 2), Link(2, 5), Link(3, 4)]
    layers = in_layers([SMALL] * 6, links)
    assert crossings(layers, layers.rows) == 0


def test_two_layers_mostly_have_the_fewest_crossings() -> None:
    random = Random(5)
    excess = []
    for _ in range(60):
        pairs = sorted({(random.randrange(4), 4 + random.randrange(4)) for _ in range(random.randrange(3, 10))})
        layers = in_layers([SMALL] * 8, [Link(u, v) for u, v in pairs])
        tops, lows = sorted({u for u, _ in pairs}), sorted({v for _, v in pairs})
        fewest = min(crossings(layers, [list(p), list(q)]) for p in permutations(tops) for q in permutations(lows))
        excess.append(crossings(layers, layers.rows) - fewest)
    assert excess.count(0) >= 54
    assert max(excess) <= 2


def test_a_chain_is_straight_and_so_is_the_longest_path() -> None:
    #   0 -> 1 -> 3 -> 4, and 2 -> 3 beside it
    boxes = [Box(100, 40), Box(240, 40), Box(128, 40), Box(160, 40), Box(100, 40)]
    links = [Link(0, 1), Link(1, 3), Link(2, 3), Link(3, 4)]
    layers = in_layers(boxes, links)
    aligned = straight(layers, links)
    spread(layers, aligned)
    middles = in_columns(layers, aligned)
    bends = {
        s.link: middles[s.upper] + (s.upper_at or 0) - middles[s.lower] - (s.lower_at or 0) for s in layers.segments
    }
    assert bends[0] == bends[1] == bends[3] == 0
    assert bends[2] != 0
    assert middles[0] == middles[1] == middles[3] == middles[4]
