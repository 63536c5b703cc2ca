"""The macros of the adapter."""

from pathlib import Path

__all__ = ["PACKAGE_PATH"]

PACKAGE_PATH = str(Path(__file__).parent)
