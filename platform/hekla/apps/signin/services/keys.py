"""Security keys and passkeys: add, verify, remove."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import record
from hekla.apps.signin import keys
from hekla.apps.signin.models import SecurityKey
from hekla.apps.signin.relying_party import RelyingParty, relying_party
from hekla.apps.signin.services.counting import counted, one_at_a_time
from hekla.apps.signin.services.ending import settle
from hekla.apps.signin.services.recovery import first_codes
from hekla.domain import events
from hekla.domain.errors import NotFound, Refused

MOST_KEYS = 10


def add_key(user: User, *, name: str, answer: str, challenge: bytes | None, now: datetime) -> list[str]:
    """Add a key. Returns the recovery codes, which are shown only once; none if some exist already.

    Raises Refused.
    """
    with one_at_a_time(user):
        if SecurityKey.objects.filter(user=user).count() >= MOST_KEYS:
            raise Refused(_("You have %d keys, the maximum. Remove one first.") % MOST_KEYS)
        made = _made(answer, challenge)
        if SecurityKey.objects.filter(credential_id=made.credential_id).exists():
            raise Refused(_("This key is already registered here."), "credential")
        SecurityKey.objects.create(
            user=user,
            name=name,
            credential_id=made.credential_id,
            public_key=made.public_key,
            sign_count=made.sign_count,
            transports=list(made.transports),
            created_at=now,
        )
        record(events.SecurityKeyAdded(name=name), subject=f"user:{user.pk}", actor=actor_of(user), at=now)
        return first_codes(user)


def prove_with_key(user: User, *, answer: str, challenge: bytes | None, now: datetime) -> None:
    """Verify that a key of this person signed the challenge. Wrong answers count like wrong codes. Raises Refused."""
    with counted(user, now, field="credential"):
        key = _answering(user, answer)
        key.sign_count = _signed(key, answer, challenge)
        key.last_used_at = now
        key.save(update_fields=["sign_count", "last_used_at"])


def remove_key(user: User, key_id: int, *, now: datetime) -> None:
    """Remove a key. Raises NotFound, Refused."""
    with one_at_a_time(user):
        key = SecurityKey.objects.filter(user=user, pk=key_id).first()
        if key is None:
            raise NotFound(_("Unknown key."))
        key.delete()
        settle(user)
        record(events.SecurityKeyRemoved(name=key.name), subject=f"user:{user.pk}", actor=actor_of(user), at=now)


def _made(answer: str, challenge: bytes | None) -> keys.NewCredential:
    try:
        return keys.made(_party(), answer, _in_time(challenge))
    except keys.KeyNotVerified as error:
        raise Refused(_("Invalid answer from the key. Try again, or use another key."), "credential") from error


def _answering(user: User, answer: str) -> SecurityKey:
    """The key that answers. Raises Refused if it is not one of this person's."""
    try:
        found = SecurityKey.objects.filter(user=user, credential_id=keys.credential_id(answer)).first()
    except keys.KeyNotVerified as error:
        raise _wrong() from error
    if found is None:
        raise _wrong()
    return found


def _signed(key: SecurityKey, answer: str, challenge: bytes | None) -> int:
    try:
        return keys.signed(_party(), key, answer, _in_time(challenge))
    except keys.KeyNotVerified as error:
        raise _wrong() from error


def _party() -> RelyingParty:
    party = relying_party()
    if party is None:
        raise Refused(_("Keys do not work at this console's address."), "credential")
    return party


def _in_time(challenge: bytes | None) -> bytes:
    if challenge is None:
        raise Refused(_("The request took more than five minutes, or was sent twice. Try again."), "credential")
    return challenge


def _wrong() -> Refused:
    return Refused(_("This key does not verify you. Use another key, or a code."), "credential")
