"""Usage errors: words that do not make a command. The command line ends with exit code 2."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import HeadwaterError, did_you_mean
from headwater.cli._verbs import verb_names

__all__ = ["UsageError"]


class UsageError(HeadwaterError):
    """The words do not make a command."""

    @classmethod
    def unknown_verb(cls, name: str) -> UsageError:
        near = did_you_mean(name, verb_names())
        lead = f"did you mean `{near}`? " if near else ""
        return cls("E8001", f"no verb `{name}`", hint=f"{lead}verbs: {', '.join(verb_names())}")

    @classmethod
    def only_in_a_project(cls, options: Sequence[str], lake: str) -> UsageError:
        named = ", ".join(f"`{one}`" for one in options)
        one = len(options) == 1
        return cls(
            "E8005",
            f"{named} {'means' if one else 'mean'} something in a project only, and there is no headwater.yaml",
            where=lake,
            hint=f"leave {'it' if one else 'them'} out, or make a project there with `headwater init`",
        )
