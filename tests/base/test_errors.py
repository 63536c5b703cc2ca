"""Every error has a stable code, a message, and survives a trip to another process."""

from __future__ import annotations

import inspect
import pickle
from typing import TYPE_CHECKING

import pytest

from headwater.base import errors
from headwater.base.errors import HeadwaterError, NotFoundError, StorageError, did_you_mean
from headwater.base.kinds import VIEW

if TYPE_CHECKING:
    from collections.abc import Iterator


def sample(annotation: str) -> object:
    """A value that fits a parameter of a constructor."""
    if annotation.startswith(("Sequence", "list", "Iterable")):
        return ["orders", "cards"]
    return {"int": 3, "int | None": 3, "float": 1.5, "KindWords": VIEW}.get(annotation, "text")


def built() -> Iterator[tuple[str, HeadwaterError]]:
    for kind_name in errors.__all__:
        kind = getattr(errors, kind_name)
        if not (isinstance(kind, type) and issubclass(kind, HeadwaterError)):
            continue
        for name, member in vars(kind).items():
            if isinstance(member, classmethod):
                parameters = inspect.signature(getattr(kind, name)).parameters.values()
                given = [sample(p.annotation) for p in parameters if p.kind is not p.KEYWORD_ONLY]
                yield f"{kind_name}.{name}", getattr(kind, name)(*given)


BUILT = dict(built())


@pytest.mark.parametrize("name", BUILT)
def test_each_error_is_complete(name: str) -> None:
    error = BUILT[name]
    assert error.code.startswith("E")
    assert len(error.code) == 5
    assert error.message
    assert str(error).startswith(f"error[{error.code}]: {error.message}")
    assert error.as_dict() == {"code": error.code, "message": error.message, "where": error.where, "hint": error.hint}
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.as_dict() == error.as_dict()
    assert str(copy) == str(error)


def test_codes_are_unique() -> None:
    codes = [error.code for error in BUILT.values()]
    assert len(set(codes)) == len(codes)


def test_the_tree_at_the_top_names_every_class() -> None:
    assert errors.__doc__ is not None
    for name in errors.__all__:
        if name.endswith("Error"):
            assert name in errors.__doc__


def test_errors_are_caught_by_the_usual_names() -> None:
    assert isinstance(BUILT["InputError.bad_argument"], ValueError)
    assert isinstance(BUILT["NotFoundError.table"], LookupError)
    assert isinstance(BUILT["StorageError.denied"], OSError)
    assert isinstance(StorageError.full("x"), HeadwaterError)


def test_hints_name_the_nearest() -> None:
    assert did_you_mean("ORDRES", ["orders", "cards"]) == "orders"
    assert did_you_mean("zzz", ["orders"]) is None
    assert "did you mean `orders`?" in str(NotFoundError.table("oders", ["orders"], "here"))
    assert "there are no tables yet" in str(NotFoundError.table("oders", [], "here"))
    many = str(NotFoundError.column("q", [f"c{i}" for i in range(20)]))
    assert "… (20 in all)" in many


def test_underline_points_at_the_place() -> None:
    assert errors.underline("a + ", 4).splitlines()[1].endswith("    ^")
    assert errors.underline("a", None) == "a"
    assert errors.underline("a", 9) == "a"
