"""A dry run of a Spark pipeline: what its views would be, with nothing changed.

A view that is there as it is declared is read as it is. One that is not there, or has another definition, is outlined:
its columns are known, and other views of the same run may read it by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.base.errors import NotFoundError
from headwater.base.schema import Schema
from headwater.derived import kinds
from headwater.derived.outline import Shape
from headwater.lake.published import is_built

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["outlined"]

_shapes: dict[tuple[str, str], Shape] = {}
"""The views of this dry run, by lake and name in lower case."""


def outlined(lake: Lake, name: str, query: str | None, **options: Any) -> tuple[Schema, bool]:
    """The columns that a view would have, and whether it is there with this definition, and built."""
    table = lake.named(name)
    if query is None:
        schema, same = Schema.from_arrow(lake.view(name).schema), True
    else:
        kind, declared = kinds.kind("view"), {"sql": query, **options}
        meant = kind.outline(name, declared, lambda asked: _shape(lake, asked), lake.user_functions)
        assert meant.schema is not None, "views have columns"
        schema = meant.schema
        same = table.exists() and kind.difference(name, declared, meant, lake.environment()) is None
    _shapes[lake.location, name.lower()] = Shape(name, schema, table.location)
    return schema, same and is_built(table.snapshot)


def _shape(lake: Lake, name: str) -> Shape:
    known = _shapes.get((lake.location, name.lower()))
    if known is not None:
        return known
    table = lake.named(name)
    if not table.exists():
        raise NotFoundError.table(name, lake.catalog.names(), lake.location)
    return Shape(table.name, table.snapshot.schema, table.location)
