"""The JSON Schema of ``headwater.yaml``, shipped beside this file as ``schema.json``.

``HEADWATER_UPDATE_GOLDEN=1 pytest tests/pipeline`` writes it again after a change of the models.
"""

from __future__ import annotations

from headwater.base.config import schema
from headwater.pipeline.config import ProjectConfig

__all__ = ["schema_text"]


def schema_text() -> str:
    """The schema, as its file holds it."""
    return schema.schema_text(ProjectConfig, "Headwater: headwater.yaml")
