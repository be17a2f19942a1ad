"""Codes of an authenticator app, computed by RFC 6238 and not with Hekla's code."""

import base64
import hmac
from datetime import datetime


def code_at(secret: str, at: datetime) -> str:
    counter = (int(at.timestamp()) // 30).to_bytes(8, "big")
    digest = hmac.digest(base64.b32decode(secret), counter, "sha1")
    at_byte = digest[-1] & 15
    return f"{(int.from_bytes(digest[at_byte : at_byte + 4], 'big') & 0x7FFFFFFF) % 10**6:06d}"
