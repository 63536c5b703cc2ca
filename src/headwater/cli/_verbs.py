"""What a verb is, and how the verbs are found."""

from __future__ import annotations

import argparse
import pkgutil
from collections.abc import Mapping
from enum import IntEnum
from importlib import import_module
from typing import Protocol, cast

import headwater.cli
from headwater.cli._screen import Screen

__all__ = ["Exit", "Verb", "all_verbs", "load_verb", "verb_names"]


class Exit(IntEnum):
    """What the exit code of the command says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    STALE = 3


class Verb(Protocol):
    """The shape of a module that is a verb."""

    SUMMARY: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's own arguments."""

    def run(self, arguments: argparse.Namespace, screen: Screen) -> int:
        """Do it, and return an `Exit`."""


def verb_names() -> list[str]:
    """The verbs, in order of name, without loading them."""
    found = (module.name for module in pkgutil.iter_modules(headwater.cli.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def load_verb(name: str) -> Verb:
    """The module of one verb."""
    return cast("Verb", import_module(f"headwater.cli.{name}"))


def all_verbs() -> Mapping[str, Verb]:
    """Every verb with its module."""
    return {name: load_verb(name) for name in verb_names()}
