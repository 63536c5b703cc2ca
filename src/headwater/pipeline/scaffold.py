"""A new project: a folder that works at once, with sample rows, a view of each sort, an index and an online table.

The files are those of the folder ``template`` beside this one; the sample rows are written into the project's own lake.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

from headwater.base.errors import ProjectError, SetupError
from headwater.base.packages import required
from headwater.pipeline.schema import SCHEMA_LINE, keep_schema

__all__ = ["init_project", "sample_rows"]

_NOTES = (
    "The card was lost on the train",
    "Asked for a refund, the parcel never came",
    "Praised the quick delivery",
    "Card declined twice, paid by transfer",
    "Refund paid, closed",
)


def init_project(folder: str | os.PathLike[str], *, name: str | None = None) -> list[str]:
    """Make a project in a folder, which may hold anything but what the project would write; gives its files."""
    root = Path(folder)
    files = _files(name or root.resolve().name or "project")
    taken = [path for path in (*files, "lake") if (root / path).exists()]
    if taken:
        raise ProjectError.folder_taken(str(root), taken)
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    keep_schema(root)
    _write_samples(root / "lake")
    return list(files)


def _files(name: str) -> dict[str, str]:
    found = {}
    template = resources.files("headwater.pipeline") / "template"
    searchable = _has_search()
    for path in ("headwater.yaml", "views/customer_spend.sql", "views/daily_revenue.sql", "functions/text.py"):
        text = template.joinpath(*path.split("/")).read_text(encoding="utf-8").replace("PROJECT_NAME", _plain(name))
        found[path] = (
            text if searchable else text.replace("indexes:", "# pip install 'headwater[search]' first\n# indexes:")
        )
    found["headwater.yaml"] = SCHEMA_LINE + found["headwater.yaml"]
    found[".gitignore"] = "lake/\n.headwater/\n"
    return found


def _plain(name: str) -> str:
    kept = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)
    return kept if kept[:1].isalpha() else f"project_{kept}"


def _has_search() -> bool:
    try:
        required("tantivy", "a search index", "search")
    except SetupError:
        return False
    return True


def sample_rows() -> dict[str, list[dict[str, Any]]]:
    """The rows of the sample tables, the same every time."""
    began = datetime(2025, 1, 1, tzinfo=UTC)
    orders = [
        {
            "order_id": n,
            "customer_id": 1 + n * n % 23,
            "amount": round(5 + n * 37 % 200 + n % 100 / 100, 2),
            "ordered_at": began + timedelta(hours=5 * n),
        }
        for n in range(200)
    ]
    notes = [{"note_id": n, "customer_id": 1 + n % 23, "body": _NOTES[n % len(_NOTES)]} for n in range(40)]
    return {"orders": orders, "notes": notes}


def _write_samples(folder: Path) -> None:
    from headwater.lakehouse import connect

    with connect(folder) as lake:
        for name, rows in sample_rows().items():
            lake.write(name, rows)
