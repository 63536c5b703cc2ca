"""A check: what the rows of a node have to be, and the query for those that are not.

Checks are written as in dbt: ``unique``, ``not_null``, ``accepted_values``, ``relationships``, and any query that must
give no rows, with ``severity`` (error, or warn) and ``where``. Each becomes one query in Spark SQL whose rows are the
violations. That query is kept as a view, so that looking at it again costs the change of the node and not the node.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from headwater.base.errors import InputError

__all__ = ["CHECKS", "Check", "CheckKind", "Severity", "parse_checks"]

CheckKind = Literal["not_null", "unique", "accepted_values", "relationships", "sql"]
Severity = Literal["error", "warn"]

_OPTIONS: Mapping[CheckKind, tuple[str, ...]] = {
    "not_null": (),
    "unique": (),
    "accepted_values": ("values",),
    "relationships": ("to", "field"),
    "sql": ("query",),
}
CHECKS = "checks."
"""What the names of the views of violations begin with."""
_COMMON = ("severity", "where", "name")


@dataclass(frozen=True, kw_only=True)
class Check:
    """What rows of a node have to be.

    Parameters
    ----------
    kind : str
        not_null, unique, accepted_values, relationships or sql
    node : str
        the table or artefact
    column : str, optional
        that it is about; a check by SQL has none
    values : tuple
        of accepted_values
    to, field : str
        of relationships: the table, and the column there, that have to have every value
    query : str
        of sql: the query that has to give no rows
    where : str, optional
        a condition: other rows are not looked at
    severity : str
        whether a violation holds back what reads the node
    name : str
        by default made of what it is

    >>> print(Check(kind="unique", node="orders", column="id").violations)
    SELECT `id`, count(*) AS rows FROM `orders` WHERE `id` IS NOT NULL GROUP BY `id` HAVING count(*) > 1
    """

    kind: CheckKind
    node: str
    column: str | None = None
    values: tuple[object, ...] = ()
    to: str = ""
    field: str = ""
    query: str = ""
    where: str | None = None
    severity: Severity = "error"
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(CheckKind):
            raise InputError.bad_argument("tests", self.kind, f"one of {', '.join(get_args(CheckKind))}")
        if self.severity not in get_args(Severity):
            raise InputError.bad_argument("severity", self.severity, "error or warn")
        if (self.column is None) != (self.kind == "sql"):
            raise InputError.bad_argument("column", self.column, f"a column, for every check but sql ({self.kind})")
        lacking = [name for name in _OPTIONS[self.kind] if not getattr(self, name)]
        if lacking:
            raise InputError.bad_argument(lacking[0], getattr(self, lacking[0]), f"what {self.kind} needs")
        if not self.name:
            about = "_".join(part for part in (self.kind, self.node.replace(".", "_"), self.column or "") if part)
            object.__setattr__(self, "name", f"{about}_{self._digest[:8]}" if self._is_told else about)

    @property
    def _is_told(self) -> bool:
        """Whether there may be another one of the same kind on the same column."""
        return bool(self.where or self.values or self.to or self.query)

    @property
    def _digest(self) -> str:
        said = [self.kind, self.node, self.column, [str(v) for v in self.values], self.to, self.field, self.query]
        return hashlib.sha256(json.dumps([*said, self.where]).encode()).hexdigest()

    @property
    def view(self) -> str:
        """The name of the view that keeps its violations."""
        plain = "".join(c if c.isalnum() else "_" for c in self.name)
        return f"{CHECKS}{plain}"

    @property
    def reads(self) -> tuple[str, ...]:
        """The nodes that it is about."""
        return (self.node, self.to) if self.to else (self.node,)

    @property
    def violations(self) -> str:
        """The query whose rows break it."""
        if self.kind == "sql":
            return self.query.strip().rstrip(";")
        node, column = _quoted(self.node), _quoted(self.column or "")
        conditions = [f"({self.where})"] if self.where else []
        if self.kind == "unique":
            where = " AND ".join([f"{column} IS NOT NULL", *conditions])
            return (
                f"SELECT {column}, count(*) AS rows FROM {node} WHERE {where} GROUP BY {column} HAVING count(*) > 1"
            )  # fmt: skip
        if self.kind == "relationships":
            there = f"SELECT {_quoted(self.field)} AS key FROM {_quoted(self.to)}"
            mine = " AND ".join([f"{column} IS NOT NULL", *conditions])
            return (
                f"SELECT child.* FROM (SELECT * FROM {node} WHERE {mine}) child "
                f"LEFT ANTI JOIN ({there}) parent ON child.{column} = parent.key"
            )
        wrong = f"{column} IS NULL"
        if self.kind == "accepted_values":
            wrong = f"{column} NOT IN ({', '.join(map(_literal, self.values))})"
        return f"SELECT * FROM {node} WHERE {' AND '.join([wrong, *conditions])}"


def parse_checks(node: str, tests: Iterable[object], *, column: str | None = None) -> list[Check]:
    """The checks of a node, or of one of its columns, as dbt's YAML has them; ``{"unique": "id"}`` names the column.

    >>> tests = ["unique", {"accepted_values": {"values": ["paid", "open"], "severity": "warn"}}]
    >>> [(one.kind, one.severity) for one in parse_checks("orders", tests, column="status")]
    [('unique', 'error'), ('accepted_values', 'warn')]
    """
    found = []
    for test in tests:
        kind, options = _named(test)
        options = dict(options)
        config = options.pop("config", {})
        options = {**(config if isinstance(config, Mapping) else {}), **options}
        if kind not in get_args(CheckKind):
            raise InputError.bad_argument("tests", kind, f"one of {', '.join(get_args(CheckKind))}")
        known = (*_OPTIONS[kind], *_COMMON, "column")
        for name in options:
            if name not in known:
                raise InputError.bad_argument(name, options[name], f"an option of {kind}: {', '.join(known)}")
        if "values" in options:
            options["values"] = tuple(options["values"])
        if "to" in options:
            options["to"] = _referred(str(options["to"]))
        found.append(Check(kind=kind, node=node, **{"column": column, **options}))
    return found


def _named(test: object) -> tuple[Any, Mapping[str, Any]]:
    if isinstance(test, str):
        return test, {}
    if isinstance(test, Mapping) and len(test) == 1:
        ((kind, options),) = test.items()
        if isinstance(options, str) and kind == "sql":
            return kind, {"query": options}
        if isinstance(options, str) and kind in ("not_null", "unique"):
            return kind, {"column": options}
        if options is None or isinstance(options, Mapping):
            return kind, options or {}
    raise InputError.bad_argument("tests", test, 'the name of a check, or {"accepted_values": {"values": […]}}')


def _referred(text: str) -> str:
    """The name in dbt's ``ref('customers')``, or as it stands."""
    inner = text.strip().removeprefix("ref(").removesuffix(")") if text.strip().startswith("ref(") else text
    return inner.strip().strip("'\"")


def _quoted(name: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return f"{value!r}D"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
