"""Pairs of keys for ssh, made from a secret: the same secret gives the same pair, so that no key need be kept.

The curve is Ed25519 (RFC 8032), of which only the public key is computed here: nothing is signed. The private key is
written as OpenSSH keeps it. The time that this takes depends on the secret, so it is for callers who are not watched.
"""

import base64
import hashlib
import textwrap
from dataclasses import dataclass, field

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_KIND = b"ssh-ed25519"
_BLOCK = 8
Point = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The two as the files of OpenSSH hold them."""

    private: str = field(repr=False)
    public: str


def key_pair(seed: bytes, comment: str) -> KeyPair:
    """The pair of a secret of 32 bytes."""
    public = public_key(seed)
    blob = _string(_KIND) + _string(public)
    check = hashlib.sha256(b"check" + seed).digest()[:4]
    inner = check * 2 + blob + _string(seed + public) + _string(comment.encode())
    inner += bytes(range(1, -len(inner) % _BLOCK + 1))
    whole = b"openssh-key-v1\0" + _string(b"none") * 2 + _string(b"") + (1).to_bytes(4, "big")
    text = base64.b64encode(whole + _string(blob) + _string(inner)).decode()
    lines = ["-----BEGIN OPENSSH PRIVATE KEY-----", *textwrap.wrap(text, 70), "-----END OPENSSH PRIVATE KEY-----", ""]
    return KeyPair("\n".join(lines), f"{_KIND.decode()} {base64.b64encode(blob).decode()} {comment}\n")


def public_key(seed: bytes) -> bytes:
    """The public key of a private one, which is any 32 bytes."""
    digest = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little")
    scalar = (digest & ((1 << 254) - 8)) | (1 << 254)
    x, y, z, _product = _times(scalar)
    inverse = pow(z, -1, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | ((x & 1) << 255)).to_bytes(32, "little")


def _string(data: bytes) -> bytes:
    """As ssh writes bytes: their number, then they."""
    return len(data).to_bytes(4, "big") + data


def _base() -> Point:
    """The point whose multiples are the public keys: y is 4/5, and x the even root that belongs to it."""
    y = 4 * pow(5, -1, _P) % _P
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    x = _P - x if x % 2 else x
    return x, y, 1, x * y % _P


def _sum(first: Point, second: Point) -> Point:
    """In the coordinates x/z, y/z, z, x·y/z (RFC 8032 §5.1.4)."""
    a = (first[1] - first[0]) * (second[1] - second[0]) % _P
    b = (first[1] + first[0]) * (second[1] + second[0]) % _P
    c = 2 * first[3] * second[3] * _D % _P
    d = 2 * first[2] * second[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int) -> Point:
    """So many times the base point."""
    total, doubled = (0, 1, 1, 0), _base()
    while scalar:
        if scalar & 1:
            total = _sum(total, doubled)
        doubled = _sum(doubled, doubled)
        scalar >>= 1
    return total
