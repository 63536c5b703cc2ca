"""Random questions about notes: queries in the language of searches, and conditions in SQL, with hostile needles."""

from __future__ import annotations

import random

from tests.search.notes import LONG, WORDS

from headwater.search.language import MAX_LENGTH
from headwater.testing.hostile import HOSTILE_TEXTS

__all__ = ["random_condition", "random_query"]

_PLAIN = [
    "card",
    "lost",
    "refund",
    "zürich",
    "STRASSE",
    "data",
    "metadata",
    "日本語",
    "x",
    "42",
    "cafe",
    "naïve",
    "absent",
    "k",
]
_SPECIAL = set("+-!(){}[]^\"~*?:\\/&|<>='`,")


def _escaped(text: str) -> str:
    return "".join("\\" + c if c in _SPECIAL or c.isspace() else c for c in text)


# -- queries ---------------------------------------------------------------------------------------------------------


def random_query(rng: random.Random) -> str:
    """A query that can be read and has a meaning for every field that it names."""
    while len(found := _query(rng, 2)) > MAX_LENGTH:  # two very long words, which are refused
        pass
    return found


def _query(rng: random.Random, depth: int) -> str:
    if depth and rng.random() < 0.5:
        one, two = (_query(rng, depth - 1) for _ in range(2))
        return rng.choice(
            [f"({one}) AND ({two})", f"({one}) OR ({two})", f"({one}) AND NOT ({two})", f"NOT ({one})", f"+({one}) ({two})",
             f"({one}) -({two})", f"({one})^2.5 ({two})", f"({one}) OR NOT ({two})"]
        )  # fmt: skip
    return rng.choice(_LEAVES)(rng)


def _word(rng: random.Random) -> str:
    return rng.choice(_PLAIN)


def _phrase(rng: random.Random) -> str:
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 3))).replace("\\", "\\\\").replace('"', '\\"')
    return f'body:"{words}"' + rng.choice(["", "", "*"] if words.split()[-1].isalpha() else [""])


def _pattern(rng: random.Random) -> str:
    word, field = _word(rng), rng.choice(["", "body:", "title:", "author:"])
    begin, end = sorted((rng.randint(0, len(word)), rng.randint(0, len(word))))
    piece = _escaped(word[begin:end]) or "a"
    return field + rng.choice(
        [f"{piece}*", f"*{piece}", f"*{piece}*", f"?{piece}", f"{piece}?", f"{piece}*{piece}", f"*{piece}?"]
    )


def _keyword(rng: random.Random) -> str:
    return rng.choice(
        ["author:ann", 'author:"Ann"', "author:日本", r"author:a\*b", r"author:a\?b", 'author:"a b"', 'author:"A%"', "author:_",
         r"author:\\", "author:a?b", "author:a*", "author:*n*", "author: IN [ann Zoë absent]", "author:an~1", "author:[A TO a]",
         "author:{A TO *}", "author:/a.b/", 'author:"new\nline"', "author:new*", 'author:"a"*']
    )  # fmt: skip


def _number(rng: random.Random) -> str:
    low, high = sorted(rng.choice([-(2**63), -1, 0, 7, 41, 42, 43, 2**53, 2**53 + 1, 2**63 - 1]) for _ in range(2))
    begin, end = rng.choice("[{"), rng.choice("]}")
    return rng.choice(
        [f"amount:{begin}{low} TO {high}{end}", f"amount:>{low}", f"amount:<={low}", f"amount:{low}", f"amount: IN [{low} {high}]",
         f"weight:{begin}-2.5 TO 0.1{end}", "weight:>1", "weight:0", "weight:-0.0", "weight:<0.1", "weight:inf", "weight:>=inf",
         f"price:{begin}-1.5 TO 2{end}", "price:9999999999.99", "open:true", "open:false"]
    )  # fmt: skip


def _time(rng: random.Random) -> str:
    return rng.choice(
        ["day:2024-02-29", "day:[1969-01-01 TO 2024-02-29}", "day:<1970-01-01", "day:>=0001-01-01",
         'at:"2024-01-01T00:00:00Z"', 'at:>"2024-01-01T00:00:00Z"', 'at:["2024-01-01T00:00:00Z" TO "2024-01-01T00:00:00.000001Z"]',
         'at:{"2024-01-01T00:00:00Z" TO *}', 'at:<"2023-12-31T23:59:59.999999Z"']
    )  # fmt: skip


def _other(rng: random.Random) -> str:
    return rng.choice(
        ["raw:00ff", 'raw:""', "raw:616263", "raw: IN [00ff 616263]", "host:10.0.0.1", 'host:"::1"', 'host:"10.0.0.0/24"',
         "host:[10.0.0.0 TO 10.0.0.9]", "place.city:card", 'place.city:"re-fund"', "place.floor:1", "place.floor:[-5 TO 0]",
         "place.city:*", "tags:red", "tags:card", "counts.apples:3", "counts.pears:*", "counts.apples:>2", "*"]
        + [f"{c}:*" for c in ("body", "author", "amount", "weight", "open", "day", "at", "raw", "host", "place", "tags", "counts")]
    )  # fmt: skip


def _terms(rng: random.Random) -> str:
    return rng.choice(
        [f"body:{_escaped(rng.choice(WORDS))}", f"title:{_word(rng)}", f"{_word(rng)} {_word(rng)}", f"body:[{_word(rng)} TO data]",
         "body:{a TO d}", f"{_word(rng)}~1", f"body:{_word(rng)}~", f"body:{_word(rng)[:3]}~1*", "body:/[cd]a.*/", "/ref.*|lo.t/",
         f"body: IN [{_word(rng)} {_word(rng)}]", 'body:"..."', f"body:{LONG[:40_000]}"]
    )  # fmt: skip


_LEAVES = [_word, _terms, _terms, _phrase, _phrase, _pattern, _pattern, _keyword, _number, _time, _other]


# -- conditions ------------------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _needle(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(HOSTILE_TEXTS)
    if kind < 0.35:
        return rng.choice([LONG, LONG[:-1], LONG[:30_000], LONG + "w"])
    text = rng.choice([" ", ", ", "-", "\u00a0"]).join(rng.choice(WORDS) for _ in range(rng.randint(1, 3)))
    begin, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
    return rng.choice([text, text[begin:end], text[begin:end], text.lower(), text.upper()])


def _like(rng: random.Random) -> str:
    parts = [
        _needle(rng).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")[:500]
        for _ in range(rng.randint(1, 2))
    ]
    return rng.choice(["", "%"]) + rng.choice(["%", "_", "%_%"]).join(parts) + rng.choice(["", "%", "_"])


def random_condition(rng: random.Random, depth: int = 1) -> str:
    """A condition over the columns of notes, most of it such that an index can help."""
    if depth and rng.random() < 0.4:
        one, two = (random_condition(rng, depth - 1) for _ in range(2))
        return rng.choice([f"({one}) AND ({two})", f"({one}) OR ({two})", f"NOT ({one})", f"({one}) AND NOT ({two})"])
    column, needle = rng.choice(["body", "title", "author"]), _quoted(_needle(rng))
    choice = rng.random()
    if choice < 0.65:
        return rng.choice(
            [f"contains({column}, {needle})", f"startswith({column}, {needle})", f"endswith({column}, {needle})",
             f"{column} LIKE {_quoted(_like(rng))}", f"{column} ILIKE {_quoted(_like(rng))}", f"{column} = {needle}",
             f"{column} IN ({needle}, {_quoted(_needle(rng))})", f"{column} <=> {needle}", f"contains(lower({column}), {needle})",
             f"lower({column}) = {needle}", f"{column} > {needle}", f"{column} <= {needle}", f"{needle} < {column}",
             f"{column} LIKE 'a!%%' ESCAPE '!'", f"{column} IS NULL", f"{column} IS NOT NULL", f"lower({column}) IN ('ann', 'zoë')"]
        )  # fmt: skip
    number = rng.choice(
        ["42", "41.5", "-1", "0", "9007199254740992", "9007199254740993.0D", "9223372036854775807", "1e19", "-1e19"]
    )
    op = rng.choice(["=", "<", "<=", ">", ">=", "<=>", "!="])
    return rng.choice(
        [f"amount {op} {number}", f"{number} {op} amount", f"amount IN (42, 7, {number})", "amount IS NULL", "amount BETWEEN 7 AND 42",
         f"weight {op} {rng.choice(['0', '0.1', '-2.5D', '0.1D', '1e300', '5e-324D'])}", f"price {op} {rng.choice(['1.5', '-2', '0.33D'])}",
         "open", "NOT open", f"open {op} true", f"day {op} DATE '2024-02-29'", "day IS NOT NULL",
         f"at {op} TIMESTAMP '2024-01-01 00:00:00 UTC'", f"at {op} TIMESTAMP '2024-01-01 00:00:00.000001 UTC'",
         "raw = X'00ff'", "raw IN (X'00ff', X'616263')", "raw IS NULL", "host = '10.0.0.1'", "host IS NOT NULL", "place IS NULL",
         "place.floor IS NULL", "place.city = 'card'", "tags IS NULL", "id > 3", "part = 'a'", f"part {op} 'é/=%'"]
    )  # fmt: skip
