"""A security key in software (WebAuthn), and what the browser does around it: by the standard, not by our own code."""

import json
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from struct import pack

import cbor2
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

PRESENT, MADE = 0x01, 0x40


@dataclass
class SoftwareKey:
    """Answers the options of a page, as a browser at `origin` would have it answered."""

    origin: str = "http://localhost"
    count: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    private: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))

    def create(self, options: str) -> str:
        asked = json.loads(options)
        made = bytes(16) + pack(">H", len(self.credential_id)) + self.credential_id + self._public_key()
        data = self._data(asked["rp"]["id"], PRESENT | MADE) + made
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        told = self._told("webauthn.create", asked["challenge"])
        return self._answer(clientDataJSON=told, attestationObject=attestation)

    def get(self, options: str) -> str:
        asked = json.loads(options)
        self.count += 1
        data = self._data(asked["rpId"], PRESENT)
        told = self._told("webauthn.get", asked["challenge"])
        signature = self.private.sign(data + sha256(told).digest(), ECDSA(SHA256()))
        return self._answer(clientDataJSON=told, authenticatorData=data, signature=signature)

    def _data(self, party: str, flags: int) -> bytes:
        return sha256(party.encode()).digest() + bytes([flags]) + pack(">I", self.count)

    def _told(self, kind: str, challenge: str) -> bytes:
        assert base64url_to_bytes(challenge)
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _public_key(self) -> bytes:
        point = self.private.public_key().public_numbers()
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")})

    def _answer(self, **response: bytes) -> str:
        own = bytes_to_base64url(self.credential_id)
        encoded = {name: bytes_to_base64url(value) for name, value in response.items()}
        return json.dumps({"id": own, "rawId": own, "type": "public-key", "response": encoded})
