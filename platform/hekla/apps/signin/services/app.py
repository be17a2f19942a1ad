"""The authenticator app: create its secret, confirm it, verify its codes, and remove it."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import record
from hekla.apps.signin import codes, encryption
from hekla.apps.signin.models import SecondFactor
from hekla.apps.signin.services.counting import counted, one_at_a_time
from hekla.apps.signin.services.ending import settle
from hekla.apps.signin.services.recovery import first_codes, require_second_factor, use_code
from hekla.domain import events
from hekla.domain.errors import NotFound, Refused
from hekla.lib.encryption import DecryptionError


def begin(user: User, *, now: datetime) -> None:
    """Create a secret, which is not required before it is confirmed. It replaces an unconfirmed one. Raises Refused."""
    with one_at_a_time(user):
        SecondFactor.objects.filter(user=user, confirmed_at=None).delete()
        if SecondFactor.objects.filter(user=user).exists():
            raise _is_on()
        SecondFactor.objects.create(user=user, secret=encryption.COLUMN.encrypt(codes.new_secret()), created_at=now)


def secret_of(factor: SecondFactor) -> str:
    """The decrypted secret of the app. Raises Refused if the console's secret key was changed since."""
    try:
        return encryption.COLUMN.decrypt(factor.secret)
    except DecryptionError as error:
        raise Refused(
            _(
                "The second factor cannot be decrypted: the secret key of this console has changed. Use a "
                "recovery code."
            ),
            "code",
        ) from error


def confirm(user: User, code: str, *, now: datetime) -> list[str]:
    """Require the app from now on. Returns the recovery codes, which are shown only once; none if some exist already.

    Raises NotFound, Refused.
    """
    with counted(user, now, field="code"):
        factor = _app_of(user)
        if factor.confirmed_at is not None:
            raise _is_on()
        _check(factor, code, now)
        factor.confirmed_at = now
        factor.save(update_fields=["confirmed_at"])
        record(events.SecondFactorAdded(), subject=f"user:{user.pk}", actor=actor_of(user), at=now)
        return first_codes(user)


def prove(user: User, code: str, *, now: datetime) -> None:
    """Verify a code of the app, or a recovery code. Wrong ones are counted. Raises NotFound, Refused."""
    with counted(user, now, field="code"):
        require_second_factor(user)
        if use_code(user, code, now):
            return
        factor = SecondFactor.objects.filter(user=user).exclude(confirmed_at=None).first()
        if factor is None:
            raise Refused(_("Unknown or used recovery code."), "code")
        _check(factor, code, now)


def remove(user: User, *, now: datetime) -> None:
    """Remove the app. Raises NotFound, Refused."""
    with one_at_a_time(user):
        _app_of(user).delete()
        settle(user)
        event = events.SecondFactorRemoved(username=user.username)
        record(event, subject=f"user:{user.pk}", actor=actor_of(user), at=now)


def _app_of(user: User) -> SecondFactor:
    factor = SecondFactor.objects.filter(user=user).first()
    if factor is None:
        raise NotFound(_("Two-factor authentication is not set up."))
    return factor


def _check(factor: SecondFactor, code: str, now: datetime) -> None:
    """Verify a code, and mark it as used. Raises Refused."""
    step = codes.step_of(secret_of(factor), "".join(code.split()), now)
    if step is None:
        raise Refused(_("Wrong code. Check the clock of the device with your app."), "code")
    if step <= factor.last_step:
        raise Refused(_("This code was used already. Wait for the next one."), "code")
    factor.last_step = step
    factor.save(update_fields=["last_step"])


def _is_on() -> Refused:
    return Refused(_("Two-factor authentication is on already. Turn it off first."))
