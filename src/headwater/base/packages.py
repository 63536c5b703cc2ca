"""Packages that only some calls need: a missing one is a typed error that says what to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from headwater.base.errors import SetupError

__all__ = ["required"]


def required(package: str, what: str, extra: str | None = None) -> ModuleType:
    """The package, imported; ``what`` needs it, and the optional dependency ``extra`` installs it.

    >>> required("json", "this example").__name__
    'json'
    >>> required("no_such_package", "to_nowhere()")
    Traceback (most recent call last):
    headwater.base.errors.SetupError: error[E7002]: to_nowhere() needs the package `no_such_package`
      hint: pip install no_such_package
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != package.partition(".")[0]:
            raise
        raise SetupError.missing_package(package.partition(".")[0], what, extra) from None
