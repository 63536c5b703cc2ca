"""Online tables of a lake: the kind of derived artefact that answers lookups by key."""

from headwater.serving.online.online import Online

__all__ = ["Online"]
