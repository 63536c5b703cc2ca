"""Parts of the grammar that nobody here reads: what they are called in SQL, and whether Spark would take them.

sqlglot keeps a clause under a key of its own in a node (``locks``, ``sample``). A user never wrote such a key, so each
has its words here; those that no version of Spark takes are a mistake of the text, and Spark is not offered as a way
out.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.nodes import Refused, Wrong

__all__ = ["ORDERINGS", "check_args", "name_of_kind", "ordering_clause"]

# The clauses that say in which order rows come, or on which partitions they lie.
ORDERINGS = ("order", "cluster", "distribute", "sort")

_PLAIN = "write the plain form"
# What Spark takes and we do not.
_KNOWN_TO_SPARK = {
    "pivots": ("PIVOT", "aggregate with CASE WHEN … END"),
    "sample": ("TABLESAMPLE", "filter the rows, or LIMIT them"),
    "levels": ("MAX RECURSION LEVEL", "write it behind the name of a definition of WITH RECURSIVE"),
    "alias": ("an alias here", "name the table itself: FROM t AS x"),
    "hint": ("a hint", "leave it out"),
}
# What it does not take either.
_FOREIGN = {
    "locks": ("FOR UPDATE", "leave it out: a query reads one version of each table"),
    "hints": ("WITH (…) behind a table", "leave it out"),
    "into": ("INTO", "write CREATE TABLE x AS SELECT …"),
    "connect": ("CONNECT BY", "join the table with itself"),
    "on": ("DISTINCT ON", "use row_number() OVER (PARTITION BY …) = 1 in QUALIFY"),
    "by_name": ("BY NAME", "select the columns of both sides in one order"),
    "exclude": ("EXCLUDE", "write * EXCEPT (a, b)"),
    "match": ("MATCH_RECOGNIZE", _PLAIN),
    "limit_options": ("LIMIT with more than a number", "write LIMIT 10"),
    "direction": ("FETCH", "write LIMIT 10"),
    "materialized": ("MATERIALIZED", "leave it out"),
    "with_fill": ("WITH FILL", "leave it out"),
    "operation_modifiers": ("a word before the columns", "leave it out"),
    "when": ("AT or BEFORE", "write VERSION AS OF 3"),
    "changes": ("CHANGES", "read table_changes('t', 3)"),
    "ordinality": ("WITH ORDINALITY", "use posexplode"),
    "partition": ("PARTITION behind a table", "filter by the partition's column"),
    "indexed": ("INDEXED BY", "leave it out"),
    "settings": ("SETTINGS", "leave it out"),
    "format": ("FORMAT", "leave it out"),
    "totals": ("WITH TOTALS", "use ROLLUP"),
    "only": ("ONLY", "leave it out"),
}
_KINDS: dict[type[exp.Expr], str] = {
    exp.Var: "this word",
    exp.Parameter: "a parameter of this form",
    exp.Tuple: "a list of values in parentheses",
    exp.Order: "ORDER BY",
    exp.Ordered: "ORDER BY",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.HexString: "a number in hexadecimal digits",
    exp.BitString: "a number in binary digits",
    exp.Alias: "AS",
    exp.Star: "*",
    exp.ILike: "ILIKE",
    exp.Is: "IS",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "DIV",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.Neg: "-",
    exp.RegexpLike: "RLIKE",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.Kwarg: "an argument by name",
    exp.PropertyEQ: ":=",
    exp.Command: "this statement",
    exp.Unnest: "UNNEST",
    exp.Window: "window function",
    exp.Table: "a table",
    exp.Array: "[…]",
    exp.All: "ALL (SELECT …)",
    exp.Any: "ANY (SELECT …)",
    exp.Anonymous: "a call",
    exp.Aliases: "AS (…)",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.Column: "t.*",
    exp.Slice: "[a:b]",
    exp.StrPosition: "POSITION",
    exp.TryCast: "CAST",
    exp.WindowSpec: "a frame",
}


def name_of_kind(node: exp.Expr) -> str:
    """What a node is called in SQL.

    >>> name_of_kind(exp.DPipe()), name_of_kind(exp.Collate())
    ('||', 'COLLATE')
    """
    if isinstance(node, exp.Select | exp.Subquery | exp.SetOperation | exp.Exists):
        return "subquery"
    return _KINDS.get(type(node), type(node).__name__.upper())


def ordering_clause(query: exp.Expr) -> exp.Expr | None:
    """The clause that orders the rows of a query.

    SORT BY orders the rows of each partition, and here there is one; CLUSTER BY is DISTRIBUTE BY with SORT BY, and
    DISTRIBUTE BY itself changes no row.
    """
    given = {key: query.args[key] for key in ORDERINGS if query.args.get(key)}
    if len(given) > 1 and given.keys() != {"distribute", "sort"}:
        what = "ORDER BY, CLUSTER BY, DISTRIBUTE BY and SORT BY exclude each other"
        raise Wrong(what, "keep one of them, or DISTRIBUTE BY with SORT BY", part=list(given.values())[1])
    return next((clause for key, clause in given.items() if key != "distribute"), None)


def check_args(node: exp.Expr, *known: str) -> None:
    """Refuse a part of the grammar that nobody here would look at."""
    for key, value in node.args.items():
        if not value or key in known:
            continue
        part = value[0] if isinstance(value, list) else value
        if key in _FOREIGN:
            words, hint = _FOREIGN[key]
            raise Wrong(f"{words} is not Spark SQL", hint, part=part)
        words, hint = _KNOWN_TO_SPARK.get(key, (f"{key.rstrip('_').upper()} of {name_of_kind(node)}", _PLAIN))
        raise Refused(words, hint, part=part)
