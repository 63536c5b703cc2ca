"""A code belongs to one class of errors, so that an error that came over the network has its class again."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import headwater.base.errors as errors
from headwater.base.errors import HeadwaterError, ServerError
from headwater.base.errors.codes import class_of

SOURCES = sorted(Path(errors.__file__).parent.glob("*.py"))


def test_every_code_has_its_class() -> None:
    written: dict[str, set[str]] = {}
    for source in SOURCES:
        kind = None
        for line in source.read_text().splitlines():
            if found := re.match(r"class (\w+Error)\(", line):
                kind = found[1]
            for code in re.findall(r'^\s+(?:return cls\(|made = cls\()?"(E\d{4})",', line):
                assert kind is not None
                written.setdefault(code, set()).add(kind)
    assert len(written) > 150
    for code, kinds in written.items():
        found_class = class_of(code)
        assert found_class is not None and found_class.__name__ in kinds, code
        assert len(kinds) == 1, f"{code} is used by {kinds}"


def test_errors_of_a_server_are_errors_of_the_system_too() -> None:
    error = ServerError.timed_out("http://127.0.0.1:8080", 5)
    assert isinstance(error, OSError) and isinstance(error, HeadwaterError)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and str(error).startswith(
        "error[E1766]: there was no answer within 5 s\n  where: http"
    )


@pytest.mark.parametrize("code", ["", "E", "E99999", "x"])
def test_other_codes_have_none(code: str) -> None:
    assert class_of(code) is None
