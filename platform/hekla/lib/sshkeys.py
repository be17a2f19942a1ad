"""Pairs of keys for ssh, made from a secret: the same secret gives the same pair, so that no key need be kept."""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The two as the files of OpenSSH hold them."""

    private: str = field(repr=False)
    public: str


def key_pair(seed: bytes, comment: str) -> KeyPair:
    """The pair of a secret of 32 bytes."""
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    written = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return KeyPair(written.decode(), f"{public.decode()} {comment}\n")
