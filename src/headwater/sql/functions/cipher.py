"""aes_encrypt and its kin, by the library ``cryptography``, which the extra ``headwater[crypto]`` brings.

What comes of it, as bytes: in GCM the vector of 12, the text, and the tag of 16; in CBC the vector of 16, and the text
padded by PKCS#7; in ECB the text padded. A vector that is not given is drawn at random, so that each run gives other
bytes: encryption without one is refused, but for ECB, which has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headwater.base.packages import required
from headwater.sql.casts import cast
from headwater.sql.functions.function import Function
from headwater.sql.functions.typing import argument, constant
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import STRING, family
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_BINARY = pa.binary()
_VECTOR_BYTES = {"GCM": 12, "CBC": 16, "ECB": 0}
_HINT = "give a key of 16, 24 or 32 bytes"


def _library(module: str) -> Any:
    return required(f"cryptography.hazmat.primitives.{module}", "encryption with AES", "crypto")


def _checked(key: bytes) -> bytes:
    if len(key) not in (16, 24, 32):
        raise Failed(f"an AES key of {len(key)} bytes", _HINT)
    return key


def _cipher(key: bytes, mode: str, vector: bytes) -> Any:
    modes, ciphers = _library("ciphers.modes"), _library("ciphers")
    chosen = modes.CBC(vector) if mode == "CBC" else modes.ECB()
    return ciphers.Cipher(_library("ciphers.algorithms").AES(key), chosen)


def _encrypted(data: bytes, key: bytes, mode: str, vector: bytes, beside: bytes) -> bytes:
    _checked(key)
    if len(vector) != _VECTOR_BYTES[mode]:
        raise Failed(f"a vector of {len(vector)} bytes for {mode}", f"{mode} takes {_VECTOR_BYTES[mode]} bytes")
    if mode == "GCM":
        sealed: bytes = _library("ciphers.aead").AESGCM(key).encrypt(vector, data, beside or None)
        return vector + sealed
    padder, encryptor = _library("padding").PKCS7(128).padder(), _cipher(key, mode, vector).encryptor()
    found: bytes = encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()
    return vector + found


def _decrypted(data: bytes, key: bytes, mode: str, beside: bytes) -> bytes:
    _checked(key)
    at = _VECTOR_BYTES[mode]
    try:
        if mode == "GCM":
            return bytes(_library("ciphers.aead").AESGCM(key).decrypt(data[:at], data[at:], beside or None))
        if len(data) == at:
            return b""  # Java adds nothing to nothing, not even the padding
        decryptor = _cipher(key, mode, data[:at]).decryptor()
        unpadder = _library("padding").PKCS7(128).unpadder()
        return bytes(unpadder.update(decryptor.update(data[at:]) + decryptor.finalize()) + unpadder.finalize())
    except (ValueError, required("cryptography.exceptions", "encryption with AES", "crypto").InvalidTag):
        raise Failed("bytes that are not encrypted with this key", "use try_aes_decrypt(), which gives null") from None


def _tried(data: bytes, key: bytes, mode: str, beside: bytes) -> bytes | None:
    try:
        return _decrypted(data, key, mode, beside)
    except Failed:
        return None


_ENCRYPT = define("aes_encrypt", "BLOB BLOB VARCHAR BLOB BLOB", _BINARY, _encrypted)
_DECRYPT = define("aes_decrypt", "BLOB BLOB VARCHAR BLOB", _BINARY, _decrypted)
_TRY_DECRYPT = define("try_aes_decrypt", "BLOB BLOB VARCHAR BLOB", _BINARY, _tried)


def _mode(args: Sequence[Node], name: str) -> str:
    """The mode of the call, with which its padding agrees. A missing library is named here, and not for a row."""
    _library("ciphers")
    given = [str(constant(a, name, "name the mode and the padding")).upper() for a in args[2:4]]
    mode, padding = (*given, *("GCM", "DEFAULT")[len(given) :])
    if mode not in _VECTOR_BYTES or padding not in ("DEFAULT", "NONE" if mode == "GCM" else "PKCS"):
        raise Refused(f"{name}() in {mode} with the padding {padding}", "use GCM, CBC or ECB, with DEFAULT")
    return mode


def _bytes(node: Node, name: str) -> Node:
    return node if family(node.dtype) == "binary" else cast(argument("s", node, name), _BINARY)


def _given(args: Sequence[Node], place: int, name: str) -> Node:
    """An argument that may be left out, or be empty, which is the same."""
    value = args[place] if len(args) > place else Literal(b"", _BINARY)
    return Literal(b"", _BINARY) if isinstance(value, Literal) and value.value in ("", b"") else _bytes(value, name)


def _beside(args: Sequence[Node], place: int, mode: str, name: str) -> Node:
    found = _given(args, place, name)
    if mode != "GCM" and not (isinstance(found, Literal) and found.value == b""):
        raise Refused(f"{name}() in {mode} with data beside the text", "only GCM takes it")
    return found


def _encrypt(args: Sequence[Node]) -> Node:
    name, mode = "aes_encrypt", _mode(args, "aes_encrypt")
    vector = _given(args, 4, name)
    if mode != "ECB" and isinstance(vector, Literal) and not vector.value:
        what = "aes_encrypt() without a vector, which gives another answer at each run,"
        raise Refused(what, "give it as 5th argument")
    beside = _beside(args, 5, mode, name)
    given = (_bytes(args[0], name), _bytes(args[1], name), Literal(mode, STRING), vector, beside)
    return call(name, given, _BINARY, fallible=True)


def _decrypt(name: str) -> Callable[[Sequence[Node]], Node]:
    def build(args: Sequence[Node]) -> Node:
        mode = _mode(args, name)
        given = (_bytes(args[0], name), _bytes(args[1], name), Literal(mode, STRING), _beside(args, 4, mode, name))
        return call(name, given, _BINARY, fallible=name == "aes_decrypt")

    return build


_ENCRYPT_FORM = f"{_ENCRYPT}({{0}}, {{1}}, {{2}}, {{3}}, {{4}})"
_NOTE = "with the extra headwater[crypto]; encryption by a vector that is given, or ECB"
FUNCTIONS = (
    Function("aes_encrypt", "hash", _encrypt, 2, 6, {"aes_encrypt": _ENCRYPT_FORM}, note=_NOTE, spark=("AesEncrypt",)),
    *(
        Function(
            name, "hash", _decrypt(name), 2, 5, {name: f"{udf}({{0}}, {{1}}, {{2}}, {{3}})"}, note=_NOTE, spark=kinds
        )
        for name, udf, kinds in (("aes_decrypt", _DECRYPT, ("AesDecrypt",)), ("try_aes_decrypt", _TRY_DECRYPT, ()))
    ),
)
