"""Requests to security keys and passkeys, and checks of their answers. A library implements the protocol (WebAuthn).

It is imported when a key is used: the import takes a twentieth of the time of all other imports.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.crypto import salted_hmac

from hekla.apps.accounts.models import User
from hekla.apps.signin.challenges import LASTS
from hekla.apps.signin.models import SecurityKey
from hekla.apps.signin.relying_party import RelyingParty

if TYPE_CHECKING:
    from webauthn.helpers.structs import PublicKeyCredentialDescriptor

_TIMEOUT = int(LASTS.total_seconds() * 1000)


class KeyNotVerified(Exception):
    """The answer of a key is not valid."""


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A credential that a key created for this console."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...]


def to_make(party: RelyingParty, user: User, challenge: bytes) -> str:
    """The browser's options to register a new key, as JSON; keys that are registered already are excluded."""
    import webauthn  # noqa: PLC0415
    from webauthn.helpers.structs import (  # noqa: PLC0415
        AuthenticatorSelectionCriteria,
        ResidentKeyRequirement,
        UserVerificationRequirement,
    )

    wanted = AuthenticatorSelectionCriteria(
        resident_key=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
        require_resident_key=None,
    )
    options = webauthn.generate_registration_options(
        rp_id=party.id,
        rp_name="Hekla",
        user_id=salted_hmac("hekla: security keys", str(user.pk), algorithm="sha256").digest(),
        user_name=user.username,
        user_display_name=str(user),
        challenge=challenge,
        timeout=_TIMEOUT,
        authenticator_selection=wanted,
        exclude_credentials=_described(user),
    )
    return webauthn.options_to_json(options)


def to_sign(party: RelyingParty, user: User, challenge: bytes) -> str:
    """The browser's options to sign with one of this person's keys, as JSON."""
    import webauthn  # noqa: PLC0415
    from webauthn.helpers.structs import UserVerificationRequirement  # noqa: PLC0415

    options = webauthn.generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=_TIMEOUT,
        allow_credentials=_described(user),
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    return webauthn.options_to_json(options)


def made(party: RelyingParty, answer: str, challenge: bytes) -> NewCredential:
    """The credential in the answer of a new key. Raises Unproven."""
    import webauthn  # noqa: PLC0415
    from webauthn.helpers import parse_registration_credential_json  # noqa: PLC0415

    with _whatever_comes():
        credential = parse_registration_credential_json(answer)
        verified = webauthn.verify_registration_response(
            credential=credential, expected_challenge=challenge, expected_rp_id=party.id, expected_origin=party.origin
        )
    transports = tuple(transport.value for transport in credential.response.transports or ())
    return NewCredential(verified.credential_id, verified.credential_public_key, verified.sign_count, transports)


def credential_id(answer: str) -> bytes:
    """The id of the credential that the answer claims to come from. Raises Unproven."""
    from webauthn.helpers import parse_authentication_credential_json  # noqa: PLC0415

    with _whatever_comes():
        return parse_authentication_credential_json(answer).raw_id


def signed(party: RelyingParty, key: SecurityKey, answer: str, challenge: bytes) -> int:
    """Verify a signature and return the key's new signature count.

    A count that does not grow is not valid: there is a copy of the key.
    Raises Unproven.
    """
    import webauthn  # noqa: PLC0415

    with _whatever_comes():
        return webauthn.verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origin,
            credential_public_key=bytes(key.public_key),
            credential_current_sign_count=key.sign_count,
        ).new_sign_count


def _described(user: User) -> "list[PublicKeyCredentialDescriptor]":
    from webauthn.helpers.structs import AuthenticatorTransport, PublicKeyCredentialDescriptor  # noqa: PLC0415

    return [
        PublicKeyCredentialDescriptor(
            id=bytes(key.credential_id), transports=[AuthenticatorTransport(name) for name in key.transports]
        )
        for key in SecurityKey.objects.filter(user=user)
    ]


@contextmanager
def _whatever_comes() -> Iterator[None]:
    """Turn every error into Unproven: the answer is untrusted input, and must not cause any other error."""
    try:
        yield
    except Exception as error:
        raise KeyNotVerified from error
