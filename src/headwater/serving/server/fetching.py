"""What a fetch means: from a decoded request and the tables of this process to an answer.

There are two ways to this, below ASGI (`protocol`) and as a route of it (`app`), and one meaning. A request comes as a
`FetchHead` (what its URL and its headers say) and its body; the answer is a `Reply`. Nothing here waits, and nothing
here knows sockets. Clients send the same head again and again, so everything that follows from it alone is found out
once: what is asked, whether it is allowed, in which form keys come and answers go. What depends on the version and the
form alone is prepared once, too, and kept beside the table until another version comes.

A request that cannot be answered at once, since it waits for a frontier or asks for a table that another process may
just have made, has no answer here: `Fetching.reply` gives None, and the route waits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from headwater.base.errors import HeadwaterError, LimitError, NotFoundError, RequestError
from headwater.base.frontier import Frontier
from headwater.serving.frame_reading import FrameReader, read_batches
from headwater.serving.server.answer_body import column_document, parquet_bytes, row_document
from headwater.serving.server.json_values import parse_values
from headwater.serving.server.media import MEDIA, Form, answer_form, body_form
from headwater.serving.server.murr import arrow_target, is_sparse, json_target, sparse_body
from headwater.serving.server.refusal import refuse, refuse_unexpected
from headwater.serving.server.reply import Reply, header_lines, request_id
from headwater.serving.server.request_keys import KeyReader
from headwater.serving.server.served import Served, ServedTables, check_reachable, reached
from headwater.serving.server.target import OPTIONS, Target, read_target, split_fetch

if TYPE_CHECKING:
    from headwater.serving.frame import Frame
    from headwater.serving.projection import Projection
    from headwater.serving.server.access import Access
    from headwater.serving.server.options import Limits
    from headwater.serving.version import TableVersion

__all__ = ["FetchHead", "Fetching"]

_KEPT_TARGETS = 1024
_FORMS: tuple[Form, ...] = ("arrow", "json")
_FIELDS = ("keys", *OPTIONS)
_PLAIN_JSON = ("string", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")

Headers = Mapping[bytes, bytes]


class FetchHead:
    """What the URL and the headers of a fetch say; ``problem`` is why it is refused whatever its body is."""

    __slots__ = ("form", "identity", "problem", "sent", "target")

    def __init__(self, target: Target, headers: Headers, access: Access) -> None:
        self.target = target
        self.identity = request_id(headers.get(b"x-request-id"))
        self.problem: HeadwaterError | None = None
        self.sent: Form = "json"
        self.form: Form = "json"
        try:
            access.require(headers, "read", target.table)
            self.sent = body_form(headers.get(b"content-type"), _FORMS)
            self.form = answer_form(headers.get(b"accept"), self.sent)
        except HeadwaterError as error:
            self.problem = error


class Prepared:
    """What all answers of one version have in common: how keys are read, headers by form, and how one call answers."""

    __slots__ = ("headers", "keys", "lines", "projections", "version")

    def __init__(self, version: TableVersion, reader: FrameReader) -> None:
        self.version = version
        self.keys = KeyReader(version, reader)
        facts = (
            (b"x-frontier", header_text(str(version.frontier))),
            (b"x-version", str(version.number).encode()),
        )
        self.headers = {form: ((b"content-type", media), *facts) for form, media in MEDIA.items()}
        self.lines = {form: header_lines(headers) for form, headers in self.headers.items()}
        self.projections: dict[Target, Projection] = {}
        """For targets that were answered before: what answers them by one call, where that is possible."""

    def reply(self, frame: Frame, form: Form, target: Target, count: int) -> Reply:
        """The answer in the form that is wanted."""
        is_plain = form == "arrow" and not target.murr
        written = frame.buffer if is_plain else _written(frame, form, self.version, target)
        return Reply(200, self.headers[form], written, self.lines[form], False, count, frame.missing)

    def remember(self, target: Target) -> None:
        """Take note of a target that was answered, so that the next one may be answered by one call."""
        found = self.version.fixed_projection(target.columns, target.options)
        if found is not None and target.min_frontier is None:
            if len(self.projections) >= _KEPT_TARGETS:
                self.projections.clear()
            self.projections[target] = found


class Fetching:
    """Answers fetches from the tables of one process."""

    def __init__(self, tables: ServedTables, access: Access, limits: Limits) -> None:
        self.tables, self.access, self.limits = tables, access, limits
        self._targets: dict[bytes, Target | None] = {}
        self._reader = FrameReader()
        self.nobody = tables.metrics.table("-")
        """The counters of requests that are about no table."""

    def target(self, url: bytes) -> Target | None:
        """What a URL asks for, if it is that of a fetch that can be read; else None. Kept,
        for as long as there is room.
        """
        try:
            return self._targets[url]
        except KeyError:
            pass
        found: Target | None = None
        parts = split_fetch(url)
        if parts is not None:
            try:
                found = read_target(parts[0], parts[1], murr=parts[2])
            except HeadwaterError:
                found = None  # the route says what is wrong
        if len(self._targets) >= _KEPT_TARGETS:
            self._targets.clear()
        self._targets[url] = found
        return found

    def head(self, target: Target, headers: Headers) -> FetchHead:
        """What a request says before its body."""
        return FetchHead(target, headers, self.access)

    # -- answering -------------------------------------------------------------------------------------------------

    def reply(self, head: FetchHead, body: bytes) -> Reply | None:
        """The answer, or why there is none; None where it has to be waited for. Counts it."""
        began = time.perf_counter_ns()
        served = self.tables.by_name.get(head.target.table)
        if head.problem is not None:
            found: Reply | None = refuse(head.problem, murr=head.target.murr)
        elif served is None:
            return None
        else:
            try:
                found = self._answer(served, head, body)
            except HeadwaterError as error:
                found = refuse(error, murr=head.target.murr)
            except Exception as error:  # noqa: BLE001 (a connection must get its answer)
                found = refuse_unexpected(error)
        if found is None:
            return None
        metrics = self.nobody if served is None else served.metrics
        metrics.fetched(found.status, found.keys, found.misses, time.perf_counter_ns() - began)
        return found

    def _answer(self, served: Served, head: FetchHead, body: bytes) -> Reply | None:
        version = served.following.current
        if version is None:
            return None  # its first version may just have been committed
        prepared: Prepared | None = served.prepared
        if prepared is None or prepared.version is not version:
            prepared = served.prepared = Prepared(version, self._reader)
        target, form = head.target, head.form
        if target.murr and head.sent == "arrow":
            keys = version.keys(read_batches(body))
            target = arrow_target(target, body)
        elif head.sent == "arrow":
            projection = prepared.projections.get(target)
            if projection is not None:
                frame = self._at_once(prepared, projection, body)
                if frame is not None:
                    return prepared.reply(frame, form, target, frame.rows)
            keys = prepared.keys.read(body)
        else:
            given, target = self._read_json(version, target, body)
            keys = version.keys(given)
        if target.min_frontier is not None and not _has_reached(version, target.min_frontier):
            return None
        count = len(keys)
        if count > self.limits.max_keys:
            raise LimitError.keys(count, self.limits.max_keys)
        frame = version.fetch(keys, target.columns, target.options)
        if head.sent == "arrow" and not target.murr and target not in prepared.projections:
            prepared.remember(target)
        return prepared.reply(frame, form, target, count)

    def _at_once(self, prepared: Prepared, projection: Projection, body: bytes) -> Frame | None:
        """The answer by one call, to a body that begins like one that was read before; None if it has to be read."""
        places = prepared.keys.places(body)
        if places is None:
            return None
        if places.rows > self.limits.max_keys:
            raise LimitError.keys(places.rows, self.limits.max_keys)
        return projection.answer(prepared.version.mapped, body, places.request, places.rows)

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read_json(self, version: TableVersion, target: Target, body: bytes) -> tuple[Any, Target]:
        """The keys of a JSON body, and what is asked, with what the body says of it."""
        document = read_object(body, _FIELDS)
        if "keys" not in document:
            raise RequestError.keys_missing(version.key)
        keys = document.pop("keys")
        if target.murr:
            target = json_target(target, keys)
        if document:
            target = target.with_fields(document)
        return json_keys(version, keys, self.limits.max_keys), target


def _has_reached(version: TableVersion, text: str) -> bool:
    wanted = Frontier.parse(text)
    check_reachable(version, wanted)
    return reached(version, wanted)


def read_object(body: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """A JSON object with known fields only."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError.bad_body("JSON", str(error)) from None
    if not isinstance(document, dict):
        raise RequestError.bad_body("JSON", "it is no object")
    for name in document:
        if name not in known:
            raise RequestError.unknown_parameter(name, known)
    return document


def json_keys(version: TableVersion, keys: Any, most: int) -> Any:
    """The keys of a JSON body, as `TableVersion.keys` takes them: values, arrays of values, or columns by name."""
    names = version.key
    if isinstance(keys, list):
        if len(keys) > most:
            raise LimitError.keys(len(keys), most)
        kinds = [version.schema.field(name).type for name in names]
        if len(names) == 1:
            return keys if str(kinds[0]) in _PLAIN_JSON else {names[0]: parse_values(keys, kinds[0], names[0])}
        for row in keys:
            if not isinstance(row, list) or len(row) != len(names):
                raise RequestError.bad_body("JSON", f"each key is an array of {len(names)} values: {', '.join(names)}")
        columns = [list(column) for column in zip(*keys, strict=True)] if keys else [[] for _ in names]
        return {n: parse_values(c, k, n) for n, c, k in zip(names, columns, kinds, strict=True)}
    if not isinstance(keys, dict):
        raise RequestError.bad_body("JSON", "`keys` is neither an array nor an object of arrays")
    found: dict[str, Any] = {}
    for name, column in keys.items():
        if name not in names:
            raise NotFoundError.column(name, list(names), where="keys")
        if not isinstance(column, list):
            raise RequestError.bad_body("JSON", f"the keys `{name}` are no array")
        if len(column) > most:
            raise LimitError.keys(len(column), most)
        found[name] = parse_values(column, version.schema.field(name).type, name)
    return found


def header_text(text: str) -> bytes:
    """A text as the value of a header: UTF-8, and nothing in it that could end a line."""
    return "".join(character if character.isprintable() else "?" for character in text).encode()


def _written(frame: Frame, form: Form, version: TableVersion, target: Target) -> Any:
    if form == "arrow" and not is_sparse(target):
        return frame.buffer
    batch = frame.batch()
    facts = {"frontier": str(version.frontier), "version": version.number}
    if is_sparse(target):
        return sparse_body(batch, form, facts)
    if form == "parquet":
        return parquet_bytes(batch)
    return row_document(batch, facts) if target.orient == "rows" else column_document(batch, facts)
