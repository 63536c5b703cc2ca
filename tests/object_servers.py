"""Which object store the tests run on: HEADWATER_TEST_STORAGE is s3, azure or gcs; unset, lakes lie on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest

from headwater.base.errors import SetupError
from headwater.testing.azure_server import serve_azure
from headwater.testing.gcs_server import serve_gcs
from headwater.testing.object_server import ObjectServer
from headwater.testing.server_tools import is_installed

STORAGE = os.environ.get("HEADWATER_TEST_STORAGE", "")
ON_SERVER = bool(STORAGE)
assert STORAGE in ("", "s3", "azure", "gcs"), f"HEADWATER_TEST_STORAGE={STORAGE} is none of s3, azure, gcs"

EMULATORS: dict[str, Callable[[], AbstractContextManager[ObjectServer]]] = {"azure": serve_azure, "gcs": serve_gcs}
# What a machine may lack all the same: Node or OpenSSL.
_OPTIONAL = ("E7012",)


def start_or_skip(name: str) -> Iterator[ObjectServer]:
    """The emulator of this name; whoever wants it is skipped where it is not installed: the tests download nothing."""
    if not is_installed(name):
        pytest.skip(f"no emulator of {name}: `make test-cloud` installs it")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(EMULATORS[name]())
        except SetupError as e:
            if e.code not in _OPTIONAL:
                raise
            pytest.skip(f"no emulator of {name}: {e.message}")
        yield server
