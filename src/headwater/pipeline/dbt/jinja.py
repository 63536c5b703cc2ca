"""The Jinja of dbt models, as far as it only names things.

What is known: ``{{ ref('model') }}`` (also with a package), ``{{ source('schema', 'table') }}``,
``{{ var('name', 'default') }}``, ``{{ config(key=value, …) }}`` with constants, and comments ``{# … #}``. Everything
else (``{% if %}``, loops, macros, ``env_var`` and other calls, filters) decides what the query is only when it is run,
so such a model is not taken, with the reason and the line.

>>> found = rendered("{{ config(tags=['a']) }} SELECT * FROM {{ ref('x') }}", lambda name: name, lambda s, t: t, {})
>>> found.sql.strip(), found.config, found.reads
('SELECT * FROM x', {'tags': ['a']}, ('x',))
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["NotTaken", "Rendered", "rendered"]

_PART = re.compile(r"\{#.*?#\}|\{\{-?(.*?)-?\}\}|\{%-?(.*?)-?%\}", re.DOTALL)
_STATEMENT = re.compile(r"\s*(\w+)")


class NotTaken(Exception):
    """Something whose meaning is only known when dbt runs; the text says what and where."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {what}" if line is not None else what)


@dataclass(frozen=True)
class Rendered:
    """A model without its Jinja."""

    sql: str
    config: Mapping[str, Any]
    reads: tuple[str, ...]


def rendered(
    text: str,
    ref: Callable[[str], str],
    source: Callable[[str, str], str],
    variables: Mapping[str, Any],
) -> Rendered:
    """A model's SQL; ``ref`` and ``source`` give the names of what it reads, or raise `NotTaken`."""
    config: dict[str, Any] = {}
    reads: list[str] = []

    def replaced(found: re.Match[str]) -> str:
        line = text.count("\n", 0, found.start()) + 1
        expression, statement = found.groups()
        if expression is None and statement is None:
            return ""
        if expression is None:
            word = _STATEMENT.match(statement)
            raise NotTaken(f"`{{% {word[1] if word else '…'} %}}` is decided when dbt runs", line)
        try:
            return _value(expression, line)
        except NotTaken as error:
            raise error if str(error).startswith("line") else NotTaken(str(error), line) from None

    def _value(expression: str, line: int) -> str:
        name, arguments, named = _call(expression, line)
        if name == "config":
            if arguments:
                raise NotTaken("`config` with a positional argument", line)
            config.update(named)
            return ""
        if name in ("ref", "source", "var") and all(isinstance(a, str) for a in arguments):
            if name == "ref" and len(arguments) in (1, 2) and not named:
                reads.append(ref(arguments[-1]))
                return reads[-1]
            if name == "source" and len(arguments) == 2 and not named:
                reads.append(source(arguments[0], arguments[1]))
                return reads[-1]
        if name == "var" and arguments and isinstance(arguments[0], str):
            if arguments[0] in variables:
                return str(variables[arguments[0]])
            if len(arguments) == 2:
                return str(arguments[1])
            raise NotTaken(f"the variable `{arguments[0]}` has no value in dbt_project.yml", line)
        raise NotTaken(f"`{{{{ {' '.join(expression.split())} }}}}` is not a known call", line)

    return Rendered(_PART.sub(replaced, text), config, tuple(dict.fromkeys(reads)))


def _call(expression: str, line: int) -> tuple[str, list[Any], dict[str, Any]]:
    """The name and the constant arguments of a call."""
    shown = " ".join(expression.split())
    try:
        node = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        raise NotTaken(f"`{{{{ {shown} }}}}` is not a known call", line) from None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise NotTaken(f"`{{{{ {shown} }}}}` is not a known call", line)
    try:
        arguments = [ast.literal_eval(one) for one in node.args]
        named = {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
    except ValueError:
        raise NotTaken(f"`{{{{ {shown} }}}}` has arguments that are no constants", line) from None
    return node.func.id, arguments, named
