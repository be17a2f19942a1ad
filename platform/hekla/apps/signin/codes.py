"""Codes of authenticator apps (RFC 6238, with the usual parameters), and recovery codes for when the app is lost."""

import base64
import hashlib
import secrets
from datetime import datetime

import segno
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from cryptography.hazmat.primitives.twofactor.totp import TOTP

STEP_SECONDS = 30
DIGITS = 6
RECOVERY_CODES = 10
_DRIFT = (0, -1, 1)


def new_secret() -> str:
    """A new secret for an app, in base32, which people can type."""
    return base64.b32encode(secrets.token_bytes(20)).decode()


def step_of(secret: str, code: str, now: datetime) -> int | None:
    """The time step (30 s) of this code: the current one, or one next to it for clock drift. None for a wrong code."""
    if len(code) != DIGITS or not (code.isascii() and code.isdigit()):
        return None
    present, hotp = int(now.timestamp()) // STEP_SECONDS, HOTP(base64.b32decode(secret), DIGITS, SHA1())  # noqa: S303
    typed = code.encode()
    return next((present + d for d in _DRIFT if secrets.compare_digest(hotp.generate(present + d), typed)), None)


def address(secret: str, username: str) -> str:
    """The URI in the QR code: `otpauth://totp/…`."""
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_SECONDS).get_provisioning_uri(  # noqa: S303
        username, "Hekla"
    )


def picture(secret: str, username: str) -> str:
    """The URI as a QR code: SVG without script or style, black on white in both themes, as apps need it."""
    return str(segno.make(address(secret, username), error="m").svg_inline(scale=5, dark="#000", light="#fff"))


def new_recovery_codes() -> list[str]:
    """New recovery codes: 80 random bits each, as four groups of four letters and digits."""
    return [_grouped(base64.b32encode(secrets.token_bytes(10)).decode().lower()) for _ in range(RECOVERY_CODES)]


def digest(code: str) -> str:
    """The stored hash of a recovery code; case and separators do not matter."""
    plain = "".join(letter for letter in code.lower() if letter.isalnum())
    return hashlib.sha256(plain.encode()).hexdigest()


def _grouped(text: str) -> str:
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))
