from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.observe.groups import in_pieces
from headwater.observe.layers import topological


@given(st.data(), st.integers(1, 10))
def test_boxes_can_be_ordered(data: st.DataObject, count: int) -> None:
    name = data.draw(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] < p[1])
    edges = data.draw(st.lists(pairs, max_size=20)) if count > 1 else []
    groups = {key: [i for i in range(count) if name[i] == key] for key in "abc" if key in name}
    pieces = in_pieces(groups, [i for i in range(count) if not name[i]], edges)
    assert sorted(i for _, own in pieces for i in own) == [i for i in range(count) if name[i]]
    assert all(name[i] == key for key, own in pieces for i in own)
    unit = {i: i for i in range(count)} | {i: count + k for k, (_, own) in enumerate(pieces) for i in own}
    between = {(unit[u], unit[v]) for u, v in edges if unit[u] != unit[v]}
    assert len(topological(count + len(pieces), between)) == count + len(pieces)
    whole = {i: count + ord(name[i]) if name[i] else i for i in range(count)}
    together = {(whole[u], whole[v]) for u, v in edges if whole[u] != whole[v]}
    if len(topological(400, together)) == 400:
        assert len(pieces) == len(groups)
