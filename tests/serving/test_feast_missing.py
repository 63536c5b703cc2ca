"""Without Feast: its store says what is missing, and everything else works."""

from __future__ import annotations

import importlib.util

import pytest

from headwater.base.errors import SetupError
from headwater.serving import feast_store


@pytest.mark.skipif(importlib.util.find_spec("feast") is not None, reason="Feast is here")
@pytest.mark.parametrize("name", ["HeadwaterOnlineStore", "HeadwaterOnlineStoreConfig"])
def test_the_package_that_is_missing_is_named(name: str) -> None:
    with pytest.raises(SetupError, match=r"E7002.*`feast`"):
        getattr(feast_store, name)


def test_other_names_are_attribute_errors() -> None:
    assert not hasattr(feast_store, "HeadwaterOnlineStor")
