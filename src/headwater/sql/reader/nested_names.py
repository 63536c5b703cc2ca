"""Names of calls over arrays, maps and JSON, where Spark shows an argument that nobody wrote or hides one that somebody
did.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["NESTED_NAMES"]

_X = "namedlambdavariable()"
_IDENTITY = f"lambdafunction({_X}, {_X})"
# What array_sort() does without a comparator, as Spark spells it out.
_UPWARDS = (
    f"lambdafunction((IF((({_X} IS NULL) AND ({_X} IS NULL)), 0, (IF(({_X} IS NULL), 1, (IF(({_X} IS NULL), -1, "
    f"(IF(({_X} < {_X}), -1, (IF(({_X} > {_X}), 1, 0)))))))))), {_X}, {_X})"
)
Namer = Callable[[str, list[str]], str]


def _padded(most: int, *defaults: str) -> Namer:
    """The call with the last arguments that were left out."""

    def namer(name: str, given: list[str]) -> str:
        missing = most - len(given)
        return f"{name}({', '.join([*given, *defaults[len(defaults) - missing :]] if missing > 0 else given)})"

    return namer


NESTED_NAMES: dict[str, Namer] = {
    "aggregate": _padded(4, _IDENTITY),
    "reduce": _padded(4, _IDENTITY),
    "array_sort": _padded(2, _UPWARDS),
    "sort_array": _padded(2, "true"),
    "str_to_map": _padded(3, ",", ":"),
    "from_json": lambda name, given: "entries" if given[1].strip().lower().startswith("map") else f"{name}({given[0]})",
}
