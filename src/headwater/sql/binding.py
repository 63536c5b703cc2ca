"""A value written once in DuckDB's SQL and used often.

A form that names an operand three times triples its text, and nested calls triple it again at each level. DuckDB has no LET, but a lambda over
a list of one element is one: ``list_transform([{'a': x}], lambda v: … v.a …)[1]``. Short operands (a column, a variable) are
written where they are used, which is what the optimiser likes best.

Invariant: the name of the variable occurs in none of the operands, so that it hides nothing in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["fresh", "let"]

_SHORT = 60


def fresh(*texts: str, stem: str = "e") -> str:
    """A name that none of the texts contains.

    >>> fresh("a + 1"), fresh("list_sum(e0_)")
    ('e0_', 'e1_')
    """
    number = 0
    while any(f"{stem}{number}_" in text for text in texts):
        number += 1
    return f"{stem}{number}_"


def let(operands: Sequence[str], body: Callable[..., str]) -> str:
    """The body over the operands, each of them written once where it is long.

    >>> let(["x"], lambda x: f"({x} + {x})")
    '(x + x)'
    >>> let(["x" * 61], lambda x: f"({x} + 1)").removeprefix("list_transform([{'a0': " + "x" * 61)
    "}], lambda v0_: (struct_extract(v0_, 'a0') + 1))[1]"
    """
    long = [i for i, text in enumerate(operands) if len(text) > _SHORT]
    if not long:
        return body(*operands)
    name = fresh(*operands, stem="v")
    held = ", ".join(f"'a{i}': {operands[i]}" for i in long)
    used = [f"struct_extract({name}, 'a{i}')" if i in long else text for i, text in enumerate(operands)]
    return f"list_transform([{{{held}}}], lambda {name}: {body(*used)})[1]"
