"""The picture of versions, overlay and swap in the guide: commits of a real table along time, and what two workers answer from.

Time runs to the right. Each commit is a card; below it are the layers that it names. A file that several commits name is
one block across them. In the lanes of the workers a bar is a request, in the colour of the version that it took when it
began, and a mark is the moment at which the worker swapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from headwater.observe.palette import kind_colour
from headwater.observe.svg import _style

__all__ = ["Commit", "draw"]

_LEFT, _STEP, _RIGHT, _TOP = 118, 196, 24, 96
_CARD_HEIGHT, _OVERLAY_HEIGHT, _BASE_HEIGHT, _LANE = 54, 34, 74, 40
_COLOURS = tuple(kind_colour(kind) for kind in ("source", "linear", "join", "cogroup"))


@dataclass(frozen=True)
class Layer:
    """A layer as it is drawn: its file, what it holds, and whether it is an overlay."""

    file: str
    text: str
    overlay: bool


@dataclass(frozen=True)
class Commit:
    """A version as it is drawn."""

    number: int
    frontier: str
    why: str
    layers: tuple[Layer, ...]


def draw(title: str, commits: Sequence[Commit]) -> str:
    """The picture, as a text."""
    overlays = max(sum(layer.overlay for layer in one.layers) for one in commits)
    base_y = _TOP + _CARD_HEIGHT + 26 + overlays * (_OVERLAY_HEIGHT + 8)
    lanes_y = base_y + _BASE_HEIGHT + 34
    width = _LEFT + _STEP * len(commits) + _RIGHT
    height = lanes_y + 2 * _LANE + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hw-graph" role="img" aria-label="{escape(title)}"',
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_style()}</style>",
        (
            '<defs><marker id="hw-versions" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="10" markerHeight="10" '
            'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 .8L10 5L0 9.2L2.2 5z"/></marker></defs>'
        ),
        f'<rect class="paper" width="{width}" height="{height}" rx="10"/>',
        f'<text class="title ink" x="24" y="40">{escape(title)}</text>',
        (
            '<text class="small dim" x="24" y="59">one commit makes a version; a request answers from the version it took '
            "when it began</text>"
        ),
        *(
            f'<text class="caption dim" x="24" y="{y}">{text}</text>'
            for y, text in (
                (_TOP + 31, "record log"),
                (base_y - _OVERLAY_HEIGHT // 2 - 4, "overlays"),
                (base_y + 42, "base"),
                (lanes_y + 24, "worker 1"),
                (lanes_y + _LANE + 24, "worker 2"),
            )
        ),
        *(_card(commit, at) for at, commit in enumerate(commits)),
        *_arrows(len(commits)),
        *_blocks(commits, base_y),
        *_lanes(len(commits), lanes_y, width),
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def _x(place: float) -> float:
    return _LEFT + _STEP * place


def _card(commit: Commit, at: int) -> str:
    return (
        f'<g class="node" transform="translate({_x(at):g} {_TOP})">'
        f'<rect class="card h0" width="{_STEP - 24}" height="{_CARD_HEIGHT}" rx="8"/>'
        f'<path fill="{_COLOURS[at]}" d="M6 .25A8 8 0 0 0 0 8V{_CARD_HEIGHT - 8}A8 8 0 0 0 6 {_CARD_HEIGHT - 0.25}z"/>'
        f'<text class="label ink" x="17" y="23">version {commit.number}</text>'
        f'<text class="detail dim" x="100" y="23">{escape(commit.frontier)}</text>'
        f'<text class="detail dim" x="17" y="41">{escape(commit.why)}</text></g>'
    )


def _arrows(count: int) -> list[str]:
    y = _TOP + _CARD_HEIGHT // 2
    return [
        f'<path class="edge" stroke-width="1.6" d="M{_x(at + 1) - 23:g} {y}H{_x(at + 1) - 2:g}" marker-end="url(#hw-versions)"/>'
        for at in range(count - 1)
    ]


def _blocks(commits: Sequence[Commit], base_y: int) -> list[str]:
    """One block for each file, from the first commit that names it to the last."""
    out, seen = [], set[str]()
    for at, commit in enumerate(commits):
        below = sum(layer.overlay for layer in commit.layers)
        for layer in commit.layers:  # the newest first: the oldest overlay lies on the base
            y = base_y - below * (_OVERLAY_HEIGHT + 8) if layer.overlay else base_y
            below -= layer.overlay
            if layer.file in seen:
                continue
            seen.add(layer.file)
            last = max(k for k, other in enumerate(commits) if layer.file in {one.file for one in other.layers})
            wide, high = _STEP * (last - at + 1) - 24, _OVERLAY_HEIGHT if layer.overlay else _BASE_HEIGHT
            out.append(
                f'<rect class="card {"h3" if layer.overlay else "odd"}" x="{_x(at):g}" y="{y}" width="{wide}" '
                f'height="{high}" rx="8"/>'
                f'<text class="detail ink" x="{_x(at) + 14:g}" y="{y + high / 2 + 4:g}">{escape(layer.text)}</text>'
            )
    return out


def _lanes(count: int, top: int, width: int) -> list[str]:
    """Requests of two workers: each worker swaps a moment after a commit, and a request keeps what it took."""
    out = []
    for lane, late in enumerate((0.13, 0.3)):
        y = top + lane * _LANE
        out.append(
            f'<path class="edge" stroke-width="1.2" d="M{_LEFT} {y + 20}H{width - _RIGHT}" marker-end="url(#hw-versions)"/>'
        )
        swaps = [at + late for at in range(count)]
        begin, number = late + 0.02 + 0.05 * lane, 0
        while begin < count - 0.2:
            length = (0.16, 0.34, 0.22, 0.27)[number % 4]
            version = max(at for at, swap in enumerate(swaps) if swap <= begin)
            end = min(begin + length, count - 0.12)
            out.append(
                f'<rect fill="{_COLOURS[version]}" x="{_x(begin):g}" y="{y + 10}" width="{_STEP * (end - begin):g}" '
                'height="20" rx="6"/>'
            )
            begin, number = round(end + 0.05, 4), number + 1
        for at, swap in enumerate(swaps):
            out.append(f'<path class="edge" stroke-width="2" d="M{_x(swap):g} {y + 4}V{y + 36}"/>')
            if at == 1 and lane == 0:
                out.append(f'<text class="small dim" x="{_x(swap) - 12:g}" y="{y}">swap</text>')
    out.append(
        f'<text class="small dim" x="{_LEFT}" y="{top + 2 * _LANE + 18}">a bar is a request, in the colour of its version; '
        "it never sees two</text>"
    )
    return out
