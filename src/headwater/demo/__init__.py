"""demo: what does it do for me? The story, offline: a project from its first build to its proof, and each room."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headwater.base.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from headwater.demo.act import Act

__all__ = ["PARTS", "Part", "main"]


Part = Literal["project", "rooms"]
PARTS: tuple[Part, ...] = ("project", "rooms")
NEXT = (
    "headwater init my-project                     # a project of your own, which works at once",
    "headwater demo my-demo                        # this one, to keep and to change",
    "cd my-demo; headwater plan; headwater status  # what it would do, and how fresh it is",
)


def main(path: str | None = None, *, json: bool = False, size: str = "S", part: Part | None = None) -> int:
    """Tell the story in ``path`` (a temporary folder if None); returns 0 if every check held, else 1.

    The first part is a project that is built, changed, killed, made to forget and proved; the second shows each room
    on a lake of its own. ``size`` is that of the project: "S", "M" or "L".
    """
    start = time.perf_counter()
    acts: list[Act] = []
    with ExitStack() as stack:
        folder = Path(path or stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-demo-")))
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError.bad_argument("path", str(folder), "an empty folder: the demo makes a project of its own")
        console = _console()
        if not json:
            console.print("[bold]Headwater[/]: one correction, everywhere, provably.")
            console.print(f"[dim]folder: {folder}[/]")
        for one in (part,) if part else PARTS:
            if not json:
                console.rule(f"[bold]{_TITLES[one]}[/]", align="left")
            for act in _acts(one, folder, size):
                acts.append(act)
                if not json:
                    _show(console, len(acts), act)
    held = all(a.holds for a in acts)
    seconds = time.perf_counter() - start
    if json:
        _dump(acts, held, seconds)
    else:
        count = sum(a.holds for a in acts)
        console.print(f"\n[bold]{count} of {len(acts)} checks held[/], in {seconds:.0f} s.")
        console.print("\nWhat to try next:", *NEXT, sep="\n  ", markup=False)
    return 0 if held else 1


_TITLES: dict[Part, str] = {"project": "One project", "rooms": "Room by room"}


def _acts(part: Part, folder: Path, size: str) -> Iterator[Act]:
    from headwater.spark.session import spark

    if part == "project":
        from headwater.demo.cards.telling import tell as tell_project

        yield from tell_project(folder, spark, size)
        return
    from headwater.demo.story import tell
    from headwater.lakehouse import connect

    with connect(folder / "rooms") as lake:
        yield from tell(lake, spark)


def _console() -> Console:
    from rich.console import Console

    # Rich guesses 80 columns when it writes to a file; tables need a few more.
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def _show(console: Console, number: int, act: Act) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.print(f"\n[bold cyan]{number}. {act.title}[/] [dim]({act.seconds:.1f} s)[/]")
    for line in act.sql.splitlines():
        console.print(f"   [magenta]{escape(line)}[/]")
    for name, value in act.facts.items():
        text = f"{value:,}" if isinstance(value, int) else str(value)
        console.print(f"   {name:<28} {text}", markup=False)
    if act.grid is not None:
        grid = Table(box=None, padding=(0, 2, 0, 3), header_style="bold")
        for i, name in enumerate(act.grid.columns):
            right = bool(act.grid.rows) and isinstance(act.grid.rows[0][i], int)
            grid.add_column(name, justify="right" if right or name.startswith("cents") else "left")
        for row in act.grid.rows:
            grid.add_row(*(str(v) for v in row))
        console.print(grid)
    mark = "[green]✓[/]" if act.holds else "[red]✗ does not hold:[/]"
    console.print(f"   {mark} {act.check}")


def _dump(acts: list[Act], held: bool, seconds: float) -> None:
    from json import dumps

    document = {"held": held, "seconds": round(seconds, 1), "acts": [a.as_dict() for a in acts]}
    sys.stdout.write(dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")
