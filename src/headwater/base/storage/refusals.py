"""Refusals: the error of ours for what a client of an object store reports.

obstore's text is long: it quotes the request, the answer's body and the client's own state. What the user needs is in
the status, and in the code and message of the XML (S3, Azure, Google Cloud) or JSON (Google Cloud) body.
"""

from __future__ import annotations

import re

from headwater.base.errors import StorageError
from headwater.base.storage.options import OptionNames

__all__ = ["is_bucket_missing", "translate"]

_STATUS = re.compile(r"status code: (\d{3})|(40[13]) (?:Unauthorized|Forbidden)")
_XML = re.compile(r"<Code>(\w+)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_JSON = re.compile(r'"message":\s*"([^"]*)"')
_UNREACHABLE = re.compile(r"error sending request|error trying to connect|tcp connect error|dns error|timed out")
_NO_BUCKET = re.compile(r"<Code>(?:NoSuchBucket|ContainerNotFound|ContainerBeingDeleted)</Code>")
# The last resort of every client is the metadata service of a cloud's own machines.
_METADATA = re.compile(r"169\.254\.169\.254|metadata\.google\.internal|computeMetadata|Error performing token request")
_DENIED = re.compile(r"lacked the necessary privileges|lacks? valid authentication|Unauthenticated")


def is_bucket_missing(text: str) -> bool:
    return _NO_BUCKET.search(text) is not None


def translate(text: str, location: str, names: OptionNames) -> StorageError:
    """The error of ours for what the client says, in few words."""
    status, xml, json = _STATUS.search(text), _XML.search(text), _JSON.search(text)
    number = next((n for n in status.groups() if n), "") if status else ""
    why = _reason(xml, json)
    if _METADATA.search(text):
        return StorageError.no_credentials(names.service, location, names.credentials)
    if number in ("401", "403") or _DENIED.search(text):
        return StorageError.denied(location, why or f"the server answers {number or '403'}")
    if number:
        return StorageError.failed(location, why or f"the server answers {number}")
    if _UNREACHABLE.search(text):
        place = re.search(r"https?://[^/\s?]+", text)
        return StorageError.failed(location, f"cannot reach {place[0] if place else 'the endpoint'}")
    return StorageError.failed(location, text.strip().split("\n", 1)[0][:160] or "unknown error")


def _reason(xml: re.Match[str] | None, json: re.Match[str] | None) -> str:
    if xml is not None:
        # Azure's message goes on with the request's id and time, on lines of their own.
        return ": ".join(part.strip().split("\n", 1)[0] for part in xml.groups() if part)
    return json[1] if json is not None else ""
