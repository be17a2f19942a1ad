"""What a security key or passkey is asked, and whether it answered: the protocol (WebAuthn) is the library's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import webauthn
from django.utils.crypto import salted_hmac
from webauthn.helpers import parse_authentication_credential_json, parse_registration_credential_json
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from hekla.apps.accounts.models import User
from hekla.apps.signin.challenges import LASTS
from hekla.apps.signin.models import SecurityKey
from hekla.apps.signin.relying_party import RelyingParty

_TIMEOUT = int(LASTS.total_seconds() * 1000)
_VERIFIES = UserVerificationRequirement.PREFERRED
_MAKES = AuthenticatorSelectionCriteria(
    resident_key=ResidentKeyRequirement.PREFERRED, user_verification=_VERIFIES, require_resident_key=None
)


class Unproven(Exception):
    """The answer proves nothing."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a key made for us."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...]


def to_make(party: RelyingParty, user: User, challenge: bytes) -> str:
    """What the browser is to ask of a new key, as JSON; those that are known already make no second one."""
    options = webauthn.generate_registration_options(
        rp_id=party.id,
        rp_name="Hekla",
        user_id=salted_hmac("hekla: security keys", str(user.pk), algorithm="sha256").digest(),
        user_name=user.username,
        user_display_name=str(user),
        challenge=challenge,
        timeout=_TIMEOUT,
        authenticator_selection=_MAKES,
        exclude_credentials=_described(user),
    )
    return webauthn.options_to_json(options)


def to_sign(party: RelyingParty, user: User, challenge: bytes) -> str:
    """What the browser is to ask of a key that this person has, as JSON."""
    options = webauthn.generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=_TIMEOUT,
        allow_credentials=_described(user),
        user_verification=_VERIFIES,
    )
    return webauthn.options_to_json(options)


def made(party: RelyingParty, answer: str, challenge: bytes) -> Made:
    """What the new key answered. Raises Unproven."""
    with _whatever_comes():
        credential = parse_registration_credential_json(answer)
        verified = webauthn.verify_registration_response(
            credential=credential, expected_challenge=challenge, expected_rp_id=party.id, expected_origin=party.origin
        )
    transports = tuple(transport.value for transport in credential.response.transports or ())
    return Made(verified.credential_id, verified.credential_public_key, verified.sign_count, transports)


def credential_id(answer: str) -> bytes:
    """Which key says that it answers. Raises Unproven."""
    with _whatever_comes():
        return parse_authentication_credential_json(answer).raw_id


def signed(party: RelyingParty, key: SecurityKey, answer: str, challenge: bytes) -> int:
    """How often the key has signed by now. A count that does not grow proves nothing: there is a copy of the key.

    Raises Unproven.
    """
    with _whatever_comes():
        return webauthn.verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origin,
            credential_public_key=bytes(key.public_key),
            credential_current_sign_count=key.sign_count,
        ).new_sign_count


def _described(user: User) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=bytes(key.credential_id), transports=[AuthenticatorTransport(name) for name in key.transports]
        )
        for key in SecurityKey.objects.filter(user=user)
    ]


@contextmanager
def _whatever_comes() -> Iterator[None]:
    """The answer is of somebody who is not signed in: nothing that is in it may be more than a wrong answer."""
    try:
        yield
    except Exception as error:
        raise Unproven from error
