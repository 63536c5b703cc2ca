"""Documents: YAML as plain values that know where they stand.

The problem: a mistake in a configuration is found long after the file was parsed, by code that sees dicts and strings,
and whoever has to mend it needs the line. The idea: the file is composed into YAML's nodes, which have marks, and built
into plain values here, with the place of each key and of each value kept beside them by its path.

Only data can come of a document: mappings with strings as keys, lists, strings, numbers, booleans and nulls. Scalars
are read by the core schema of YAML 1.2, so ``no`` and ``on`` are strings, and so is ``12:30``. Tags, several documents
in a file, and keys that appear twice are refused. Anchors and merge keys (``<<``) are allowed, within a bound on what
they expand to. ``${VAR}`` inside a scalar is replaced (`interpolation`). The result is a number or a boolean where one
is wanted, with quotes or without, but never a mapping or a list, whatever the variable holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self

from headwater.base.config.interpolation import BadReference, UnsetVariable, has_references, interpolate
from headwater.base.errors import ConfigError

__all__ = ["Document", "Path", "Unresolved", "dotted", "parse_scalar", "parse_value", "read_document"]

Path = tuple[str | int, ...]

_MOST_BYTES = 16 << 20
_MOST_VALUES = 200_000
_MERGE = "<<"
_CORE = (
    ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        "-+0123456789.",
    ),
)
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "null", "int", "float", "str", "map", "seq"))


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it.

    >>> dotted(("server", "tokens", 0, "name"))
    'server.tokens[0].name'
    """
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


class Unresolved(str):
    """A scalar that was put together from variables: what type it is depends on what is wanted in its place."""

    __slots__ = ("source",)

    source: str
    """The scalar as it is written in the file, which may be shown; its value may not."""

    def __new__(cls, value: str, source: str) -> Self:
        made = super().__new__(cls, value)
        made.source = source
        return made


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and where they stand in it (line and column, from 1)."""

    name: str
    value: dict[str, Any]
    values_at: dict[Path, tuple[int, int]] = field(default_factory=dict)
    keys_at: dict[Path, tuple[int, int]] = field(default_factory=dict)
    variables: dict[Path, str] = field(default_factory=dict)
    """The environment variables that have set values, by the path of these values."""

    def where(self, path: Path, *, key: bool = False) -> str:
        """Where a value stands, or the ``key`` that it has; for what is not in the file, where it would be."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.variables:
                return f"environment variable {self.variables[path[:length]]}"
        if key and path in self.keys_at:
            return self._shown(self.keys_at[path])
        for length in range(len(path), 0, -1):
            if path[:length] in self.values_at:
                # What is missing in a mapping is shown at the mapping's own key.
                places = self.keys_at if length < len(path) else self.values_at
                return self._shown(places.get(path[:length], self.values_at[path[:length]]))
        return self.name

    def _shown(self, place: tuple[int, int]) -> str:
        return f"{self.name}:{place[0]}:{place[1]}"


def read_document(text: str, name: str, environ: Mapping[str, str], *, begins: str) -> Document:
    """The document in a text; ``name`` is what the file is called in errors, and ``begins`` a hint: how one begins."""
    if len(text) > _MOST_BYTES:
        raise ConfigError.not_plain(f"the file has more than {_MOST_BYTES >> 20} MiB", name, "is it the right file?")
    node = _composed(text, name)
    document = Document(name, {})
    if node is None:
        return document
    built = _Builder(document, environ).build(node, ())
    if built is None:
        return document
    if not isinstance(built, dict):
        raise ConfigError.not_plain(
            "a configuration is a mapping, and this is not", document.where(()), f"begin with {begins}"
        )
    document.value.update(built)
    return document


def parse_value(text: str, name: str) -> Any:
    """The value that a text is in YAML, as for an environment variable: a scalar, ``[a, b]`` or ``{a: 1}``."""
    node = _composed(text, name)
    return None if node is None else _Builder(Document(name, {}), None).build(node, ())


def parse_scalar(text: str) -> Any:
    """What a scalar without quotes is: a number, a boolean, null or a string.

    >>> parse_scalar("9000"), parse_scalar("true"), parse_scalar("no"), parse_scalar("1e3"), parse_scalar("[1]")
    (9000, True, 'no', 1000.0, '[1]')
    """
    for tag, pattern, _ in _CORE:
        if pattern.match(text):
            return _scalar(tag.rpartition(":")[2], text)
    return text


def _scalar(kind: str, text: str) -> Any:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))
    if kind == "float":
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


@cache
def _loader() -> Any:
    """A loader that composes nodes and resolves plain scalars by the core schema; it constructs nothing."""
    import yaml

    class _CoreLoader(yaml.SafeLoader):  # type: ignore[misc]  # the package has no types
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for tag, pattern, first in _CORE:
        _CoreLoader.add_implicit_resolver(tag, pattern, list(first))
    return _CoreLoader


def _composed(text: str, name: str) -> Any:
    """The root node of the one document in a text; None if it is empty."""
    import yaml

    try:
        loader = _loader()(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.composer.ComposerError as e:
        where, what = _marked(e, name), str(e.problem)
        if "single document" in str(e.context):
            raise ConfigError.not_plain(
                "the file holds several documents", where, "keep what is before `---`"
            ) from None
        raise ConfigError.syntax(what, where) from None
    except yaml.MarkedYAMLError as e:
        raise ConfigError.syntax(str(e.problem or e.context), _marked(e, name)) from None
    except yaml.reader.ReaderError as e:
        line = text.count("\n", 0, e.position) + 1
        raise ConfigError.syntax(
            f"it has a character that YAML does not allow, {e.character:#x}", f"{name}:{line}"
        ) from None
    except RecursionError:
        raise ConfigError.not_plain("it is nested too deeply", name, "a configuration has a few levels") from None


def _marked(error: Any, name: str) -> str:
    mark = error.problem_mark or error.context_mark
    return name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}"


class _Builder:
    """Builds values from nodes, and keeps their places."""

    def __init__(self, document: Document, environ: Mapping[str, str] | None) -> None:
        self.document = document
        self.environ = environ
        self._open: set[int] = set()
        self._count = 0

    def build(self, node: Any, path: Path) -> Any:
        """The value of a node. Without an environment, references to variables stay as they are."""
        at = _place(node)
        self.document.values_at[path] = at
        self._count += 1
        where = self.document.where(path)
        if self._count > _MOST_VALUES:
            hint = "anchors that name anchors grow quickly: write less of them"
            raise ConfigError.not_plain(f"it has more than {_MOST_VALUES:,} values", where, hint)
        if node.tag not in _PLAIN_TAGS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise ConfigError.not_plain(f"tag `{tag}` is not allowed", where, "write plain values without tags")
        if node.id == "scalar":
            return self._scalar(node, where)
        if id(node) in self._open:
            raise ConfigError.not_plain("an anchor holds itself", where, "write the values out")
        self._open.add(id(node))
        try:
            if node.id == "sequence":
                return [self.build(child, (*path, at)) for at, child in enumerate(node.value)]
            return self._mapping(node, path)
        except RecursionError:
            raise ConfigError.not_plain("it is nested too deeply", where, "a configuration has a few levels") from None
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        made: dict[str, Any] = {}
        seen: dict[str, int] = {}
        merged: list[Any] = []
        for key_node, value_node in node.value:
            line, column = _place(key_node)
            where = f"{self.document.name}:{line}:{column}"
            if key_node.id != "scalar" or not key_node.tag.endswith((":str", ":null", ":bool", ":int", ":float")):
                raise ConfigError.not_plain("a key is not a string", where, "keys are plain names")
            key = key_node.value
            if not key_node.tag.endswith(":str"):
                raise ConfigError.not_plain(f"key `{key}` is not a string", where, f'put it in quotes: "{key}"')
            if key in seen:
                raise ConfigError.duplicate_key(key, where, seen[key])
            seen[key] = line
            if key == _MERGE:
                merged = list(self._merged(value_node, where))
                continue
            self.document.keys_at[*path, key] = (line, column)
            made[key] = self.build(value_node, (*path, key))
        for mapping in merged:
            for key_node, value_node in mapping.value:
                if key_node.value not in made and key_node.value != _MERGE:
                    self.document.keys_at[*path, key_node.value] = _place(key_node)
                    made[key_node.value] = self.build(value_node, (*path, key_node.value))
        return made

    def _merged(self, node: Any, where: str) -> Iterator[Any]:
        """The mappings that ``<<`` names; what they merge themselves comes with them."""
        for one in node.value if node.id == "sequence" else [node]:
            if one.id != "mapping":
                raise ConfigError.not_plain("`<<` does not name a mapping", where, "write `<<: *anchor`")
            if id(one) in self._open:
                raise ConfigError.not_plain("an anchor holds itself", where, "write the values out")
            self._open.add(id(one))
            yield one
            for key, value in one.value:
                if key.value == _MERGE:
                    yield from self._merged(value, where)
            self._open.discard(id(one))

    def _scalar(self, node: Any, where: str) -> Any:
        text = node.value
        if self.environ is not None and has_references(text):
            try:
                found = interpolate(text, self.environ)
            except UnsetVariable as e:
                raise ConfigError.unset_variable(e.name, where) from None
            except BadReference:
                hint = "write ${NAME} or ${NAME:-default}, and $${ for the characters themselves"
                raise ConfigError.not_plain(
                    "`${` begins no reference to an environment variable", where, hint
                ) from None
            return Unresolved(found, text)
        return _scalar(node.tag.rpartition(":")[2], text)


def _place(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
