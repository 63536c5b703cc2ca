"""The registry of features: functions that a project declares as the definitions of feature tables.

A function under ``@hw.feature`` is known here by its name, with its options; whoever refreshes a feature table asks for
the function of its name. A project that imports its files asks what came, and takes it back: its features are its own,
and another lake of the same process may have one of that name. The registry knows neither streams nor tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from headwater.base.errors import InputError

__all__ = ["Feature", "FeatureRegistry", "feature"]

F = TypeVar("F", bound=Callable[[Any], Any])


@dataclass(frozen=True, slots=True)
class Feature:
    """A function that defines a feature table: it takes a lake and gives a stream."""

    name: str
    function: Callable[[Any], Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    """As for ``lake.features``, such as ``policy``."""


class FeatureRegistry:
    """The features that were declared in this process, by name; used as a decorator, it declares one.

    >>> registry = FeatureRegistry()
    >>> @registry(policy="strict")
    ... def velocity(lake):
    ...     return lake.stream("transactions", time="ts", by="card").rolling("1h", n="count(*)")
    >>> [(one.name, dict(one.options)) for one in registry]
    [('velocity', {'policy': 'strict'})]
    >>> registry.get("velocity").function is velocity
    True
    """

    def __init__(self) -> None:
        self._features: dict[str, Feature] = {}
        self._guard = threading.Lock()

    @overload
    def __call__(self, function: F, /) -> F: ...
    @overload
    def __call__(self, /, *, name: str | None = None, **options: Any) -> Callable[[F], F]: ...
    def __call__(self, function: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Declare a function as a feature, under its own name or ``name``."""
        if function is not None:
            self.declare(function, name=name, **options)
            return function

        def declared(given: F) -> F:
            self.declare(given, name=name, **options)
            return given

        return declared

    def declare(self, function: Callable[[Any], Any], *, name: str | None = None, **options: Any) -> Feature:
        """Declare a function as a feature; one of the same name is replaced."""
        if not callable(function):
            raise InputError.bad_argument("function", function, "a function that takes a lake and gives a stream")
        made = Feature(name or str(getattr(function, "__name__", "")), function, dict(options))
        if not made.name.isidentifier():
            raise InputError.bad_argument("name", made.name, "a name for the feature table")
        with self._guard:
            self._features[made.name] = made
        return made

    def get(self, name: str) -> Feature | None:
        """The feature of that name; None if none was declared."""
        return self._features.get(name)

    def forget(self, name: str) -> None:
        """Let a name not be known any more, as before its file is imported again."""
        with self._guard:
            self._features.pop(name, None)

    def put_back(self, name: str, before: Feature | None) -> None:
        """Let a name mean what it meant ``before``: nothing, if that is None."""
        if before is None:
            self.forget(name)
        else:
            with self._guard:
                self._features[name] = before

    def __iter__(self) -> Iterator[Feature]:
        return iter([self._features[name] for name in sorted(self._features)])

    def __len__(self) -> int:
        return len(self._features)

    def __contains__(self, name: object) -> bool:
        return name in self._features


feature = FeatureRegistry()
"""What ``hw.feature`` is: the registry of this process."""
