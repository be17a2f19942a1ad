"""The end of each login session, set at sign-in. Use does not move it, so a stolen session cannot live forever."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from hekla.lib import clock


@receiver(user_logged_in)
def limit(*, request: HttpRequest, **_kwargs: Any) -> None:  # noqa: ANN401
    """Let the session expire at a fixed time. Its sockets close then as well, because they need a valid session."""
    request.session.set_expiry(clock.now() + timedelta(hours=settings.SESSION_HOURS))
