"""So many requests a minute for one person, counted in the cache; whoever watches jobs all day stays far below."""

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from hekla.apps import limits

WINDOW_SECONDS = 60
REQUESTS = 3000
SIGN_INS = 60
WHAT_IFS = 240


class PerPersonThrottle(BaseThrottle):
    """Counts in whole minutes: cheap, and exact enough against a loop that went wrong."""

    def allow_request(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        """Count this request; False when the minute is used up."""
        return limits.allows(f"api:{self.asker(request)}", most=self.most(), seconds=WINDOW_SECONDS)

    def asker(self, request: Request) -> str:
        """For whom it is counted."""
        return str(request.user.pk)

    def most(self) -> int:
        """How many requests a minute are answered."""
        return int(getattr(settings, "API_REQUESTS_A_MINUTE", REQUESTS))

    def wait(self) -> float:
        """Seconds until the next minute."""
        return limits.until_next(WINDOW_SECONDS).total_seconds()


class WhatIfThrottle(PerPersonThrottle):
    """Questions of what would be cost the engine's time; whoever types asks twice where a job would wait."""

    def asker(self, request: Request) -> str:
        """The person, counted apart."""
        return f"what-if:{request.user.pk}"

    def most(self) -> int:
        """How many questions a minute are answered."""
        return WHAT_IFS


def may_ask_what_if(user_id: int) -> bool:
    """The same count for pages: one person has one."""
    return limits.allows(f"api:what-if:{user_id}", most=WHAT_IFS, seconds=WINDOW_SECONDS)


class PerAddressThrottle(PerPersonThrottle):
    """The same for those who are not signed in, by the address that they send from."""

    def asker(self, request: Request) -> str:
        """The address."""
        return f"address:{request.META.get('REMOTE_ADDR', '')}"


class SignInThrottle(PerAddressThrottle):
    """Enough passwords for everybody behind one address, and few for somebody who guesses."""

    def asker(self, request: Request) -> str:
        """The address, counted apart."""
        return f"sign-in:{super().asker(request)}"

    def most(self) -> int:
        """How many passwords a minute are looked at."""
        return int(getattr(settings, "API_SIGN_INS_A_MINUTE", SIGN_INS))
