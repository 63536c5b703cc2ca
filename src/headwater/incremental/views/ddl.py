"""The statement that would make a view like one that is there."""

from __future__ import annotations

from headwater.base.spark_text import plain_name, text_literal
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.words import WORDS
from headwater.lake.snapshot import Snapshot

__all__ = ["POLICY", "SHARDS", "create_statement"]

POLICY, SHARDS = "headwater.policy", "headwater.shards"
"""Properties in a statement that are options of the view, and not properties of its table."""


def create_statement(name: str, meant: Definition, now: Snapshot) -> str:
    """The CREATE MATERIALIZED VIEW of a definition, with the comment of the view's table."""
    parts = [f"CREATE {WORDS.sql} {'.'.join(map(plain_name, name.split('.')))}"]
    if now.state.metadata.description:
        parts.append(f"COMMENT {text_literal(now.state.metadata.description)}")
    own = {POLICY: (meant.policy, "auto"), SHARDS: (str(meant.shards), "1")}
    listed = [f"{text_literal(k)} = {text_literal(v)}" for k, (v, default) in own.items() if v != default]
    if listed:
        parts.append(f"TBLPROPERTIES ({', '.join(listed)})")
    return "\n".join([*parts, f"AS {meant.sql}"])
