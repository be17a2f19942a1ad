"""SSH key pairs derived from a secret. The same secret gives the same pair, so no key is stored."""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Both keys in the file formats of OpenSSH."""

    private: str = field(repr=False)
    public: str


def key_pair(seed: bytes, comment: str) -> KeyPair:
    """Derive the pair from a 32-byte secret."""
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    written = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return KeyPair(written.decode(), f"{public.decode()} {comment}\n")
