"""What `up` needs at every start: the rows of a new platform, if they are missing, and a sign-in link."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.lib import clock
from hekla.lib.checkout import CHECKOUT

ADMIN = "admin"


def prepare(*, demo: bool, tell: Callable[[float], None] = lambda _part: None) -> dict[str, Any]:
    """Create the missing rows. Returns `sign_in` (a path with a one-time secret) and `username`.

    `tell`: called with the part of a demonstration's history that is made so far, from 0 to 1.
    """
    examples = _missing_examples()
    if demo or examples or accounts.first_admin(ADMIN) is None:
        from hekla.launcher import first_rows  # noqa: PLC0415  (with half of the apps, and most starts need none)

        first_rows.make(ADMIN, examples, demo=demo, tell=tell)
    now, admin = clock.now(), accounts.first_admin(ADMIN)
    if admin is None:
        return {"sign_in": reverse("accounts:sign_in"), "username": ""}
    secret = account_services.issue_link(admin, actor=PLATFORM, now=now)
    _leave_key_for_command_line(admin, now)
    return {"sign_in": reverse("accounts:use_link", args=[secret]), "username": admin.username}


def _missing_examples() -> dict[str, str]:
    """The requirements of the environments of the examples that do not exist, by name.

    They can be missing on a platform older than the examples.
    """
    known = set(clusters.environments().values_list("name", flat=True))
    files = sorted((CHECKOUT / "platform" / "examples").glob("*/environment.txt"))
    return {file.parent.name: file.read_text() for file in files if file.parent.name not in known}


def _leave_key_for_command_line(admin: User, now: datetime) -> None:
    """Write an admin token for the command line into the data folder, if there is no valid one.

    People who can read the data folder have full access anyway, so `hekla` on this machine needs no sign-in.
    """
    path = settings.HEKLA_HOME / "cli-token"
    known = path.read_text().strip() if path.exists() else ""
    if known and account_services.token_in_force(known, now=now) is not None:
        return
    secret = account_services.create_token(
        admin, name="this machine", lifetime=account_services.MAX_TOKEN_LIFETIME, now=now, actor=PLATFORM
    )
    path.touch(mode=0o600)
    path.write_text(secret)
