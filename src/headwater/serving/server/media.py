"""Media types: what a body is, and in which form the answer is wanted.

Bodies are Arrow IPC streams, JSON and, for rows, Parquet. The form of an answer is the one that ``Accept`` weighs
highest; where it does not say, JSON is answered by JSON and everything else by Arrow. Parsing such headers costs more
than a lookup, and clients send the same ones for ever, so what was parsed is kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from headwater.base.errors import RequestError

__all__ = ["ARROW", "JSON", "MEDIA", "PARQUET", "Form", "answer_form", "body_form"]

Form = Literal["arrow", "json", "parquet"]

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"

MEDIA: dict[Form, bytes] = {"arrow": ARROW.encode(), "json": JSON.encode(), "parquet": PARQUET.encode()}

_FORMS: dict[str, Form] = {ARROW: "arrow", JSON: "json", PARQUET: "parquet", "application/x-parquet": "parquet"}


@lru_cache(maxsize=256)
def body_form(content_type: bytes | None, forms: tuple[Form, ...]) -> Form:
    """What a body is, by its Content-Type.

    >>> body_form(b"Application/JSON; charset=utf-8", ("arrow", "json"))
    'json'
    """
    given = (content_type or b"").decode("latin-1")
    bare, _, parameters = given.partition(";")
    found = _FORMS.get(bare.strip().lower())
    if found not in forms or (found == "json" and not _is_utf8(parameters)):
        raise RequestError.media_type(given, [MEDIA[form].decode() for form in forms])
    return found


def _is_utf8(parameters: str) -> bool:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8", "us-ascii"):
            return False
    return True


@lru_cache(maxsize=256)
def answer_form(accept: bytes | None, sent: Form, forms: tuple[Form, ...] = ("arrow", "json", "parquet")) -> Form:
    """The form in which an answer is wanted; ``sent`` is what the request's body was.

    >>> answer_form(None, "json"), answer_form(b"*/*", "arrow")
    ('json', 'arrow')
    >>> answer_form(b"application/json;q=0.5, application/vnd.apache.parquet", "arrow")
    'parquet'
    """
    preferred: Form = "json" if sent == "json" and "json" in forms else forms[0]
    if accept is None or not accept.strip():
        return preferred
    order = [preferred, *(form for form in forms if form != preferred)]
    weights: dict[Form, tuple[int, float]] = {}
    for part in accept.decode("latin-1").split(","):
        media, *parameters = [piece.strip() for piece in part.split(";")]
        weight = _weight(parameters)
        for form in order:
            depth = _fits(media.lower(), form)
            if depth and weights.get(form, (0, 0.0))[0] < depth:
                weights[form] = (depth, weight)  # what names a type wins over what names a range
    wanted = [(weights[form][1], -place, form) for place, form in enumerate(order) if form in weights]
    best = max(wanted, default=None)
    if best is None or best[0] <= 0:
        raise RequestError.not_acceptable(accept.decode("latin-1"), [MEDIA[form].decode() for form in forms])
    return best[2]


def _fits(media: str, form: Form) -> int:
    """How exactly a media range names a form; 0 where it does not."""
    if _FORMS.get(media) == form:
        return 3
    if media == "application/*":
        return 2
    return 1 if media == "*/*" else 0


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
