"""demo: what does it do for me? The whole story on a small lake, offline, in under a minute."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from headwater.demo.act import Act

__all__ = ["main"]


def main(path: str | None = None, *, json: bool = False) -> int:
    """Tell the story in ``path`` (a temporary folder if None); returns 0 if every check held, else 1."""
    from headwater.demo.story import tell
    from headwater.lakehouse import connect
    from headwater.spark.session import spark

    start = time.perf_counter()
    acts: list[Act] = []
    with ExitStack() as stack:
        folder = path or stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-demo-"))
        lake = stack.enter_context(connect(folder))
        if lake.catalog.names():
            from headwater.base.errors import InputError

            raise InputError.bad_argument("path", folder, "an empty folder: the demo makes a lake of its own")
        console = _console()
        if not json:
            console.print("[bold]Headwater[/]: one correction, everywhere, provably.")
            console.print(f"[dim]lake: {lake.location}[/]")
        for act in tell(lake, spark):
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
        if path:
            console.print(f"[dim]The lake stays in {path}: open it with hw.connect({path!r}).[/]")
    return 0 if held else 1


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
        console.print(f"   {name:<26}{text}", markup=False)
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
