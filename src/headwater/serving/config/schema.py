"""The JSON Schema of a server's configuration file.

It is shipped beside this file (``schema.json``). ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/serving/config`` writes it
again after a change of the models.
"""

from __future__ import annotations

from headwater.base.config import schema
from headwater.serving.config.config import Config

__all__ = ["schema_text"]


def schema_text() -> str:
    """The schema, as its file holds it."""
    return schema.schema_text(Config, "Headwater: headwater serve")
