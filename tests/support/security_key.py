"""A security key in software (WebAuthn) with its browser, written to the standard and not with Hekla's code."""

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
    """Responds to the options of a page like a browser at `origin`."""

    origin: str = "http://localhost"
    count: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    private: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))

    def create(self, options: str) -> str:
        request = json.loads(options)
        made = bytes(16) + pack(">H", len(self.credential_id)) + self.credential_id + self._public_key()
        data = self._data(request["rp"]["id"], PRESENT | MADE) + made
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data("webauthn.create", request["challenge"])
        return self._answer(clientDataJSON=client_data, attestationObject=attestation)

    def get(self, options: str) -> str:
        request = json.loads(options)
        self.count += 1
        data = self._data(request["rpId"], PRESENT)
        client_data = self._client_data("webauthn.get", request["challenge"])
        signature = self.private.sign(data + sha256(client_data).digest(), ECDSA(SHA256()))
        return self._answer(clientDataJSON=client_data, authenticatorData=data, signature=signature)

    def _data(self, party: str, flags: int) -> bytes:
        return sha256(party.encode()).digest() + bytes([flags]) + pack(">I", self.count)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        assert base64url_to_bytes(challenge)
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _public_key(self) -> bytes:
        point = self.private.public_key().public_numbers()
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")})

    def _answer(self, **response: bytes) -> str:
        own = bytes_to_base64url(self.credential_id)
        encoded = {name: bytes_to_base64url(value) for name, value in response.items()}
        return json.dumps({"id": own, "rawId": own, "type": "public-key", "response": encoded})
