"""A configuration file that cannot be used as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.input import InputError
from headwater.base.errors.wording import candidates_hint, did_you_mean, list_some

__all__ = ["ConfigError"]

_SHOWN = 20


class ConfigError(InputError):
    """A configuration file that cannot be used as it is."""

    @classmethod
    def syntax(cls, why: str, where: str) -> Self:
        return cls("E1720", f"this is not YAML: {why}", where=where, hint="check the indentation, quotes and brackets")

    @classmethod
    def not_plain(cls, what: str, where: str, hint: str) -> Self:
        """Something that YAML allows and a configuration does not."""
        return cls("E1721", what, where=where, hint=hint)

    @classmethod
    def duplicate_key(cls, key: str, where: str, first_line: int) -> Self:
        hint = f"the first one is in line {first_line}: keep one of them"
        return cls("E1722", f"key `{key}` appears twice", where=where, hint=hint)._about(key)

    @classmethod
    def unknown_key(cls, key: str, known: Sequence[str], where: str) -> Self:
        near = did_you_mean(key, known)
        hint = f"{f'did you mean `{near}`? ' if near else ''}keys: {list_some(known, 20)}"
        return cls("E1723", f"unknown key `{key}`", where=where, hint=hint)._about(key)

    @classmethod
    def missing_key(cls, path: str, key: str, where: str) -> Self:
        return cls("E1724", f"`{path}` lacks the key `{key}`", where=where, hint=f"add `{key}: …` there")._about(key)

    @classmethod
    def bad_value(cls, what: str, expected: str, where: str) -> Self:
        """``what`` says which value it is, and shows it only if it may be shown: no secrets,
        nothing of the environment.
        """
        return cls("E1725", what, where=where, hint=f"expected {expected}")

    @classmethod
    def contradiction(cls, what: str, where: str, hint: str) -> Self:
        """Values that are fine one by one and do not go together."""
        return cls("E1726", what, where=where, hint=hint)

    @classmethod
    def unset_variable(cls, name: str, where: str) -> Self:
        hint = f"set it, or give a default: ${{{name}:-default}}"
        return cls("E1727", f"the environment variable `{name}` is not set", where=where, hint=hint)._about(name)

    @classmethod
    def unknown_variable(cls, name: str, part: str, known: Sequence[str], path: str) -> Self:
        """``path`` is where ``part`` was looked for."""
        return cls(
            "E1728",
            f"the environment variable `{name}` overrides nothing: there is no `{part}`",
            hint=candidates_hint(part, known, f"keys of {path}" if path else "keys")
            if known
            else f"`{path}` has no keys",
        )._about(name)

    @classmethod
    def several(cls, mistakes: Sequence[str], codes: Sequence[str], name: str) -> Self:
        """All of them at once, so that they can be mended at once."""
        more = [f"… {len(mistakes) - _SHOWN} more"] if len(mistakes) > _SHOWN else []
        return cls(
            "E1729",
            f"{name} has {len(mistakes)} mistakes ({list_some(codes)})",
            where="\n         ".join([*mistakes[:_SHOWN], *more]),
            hint="mend them, and start again: nothing was started",
        )
