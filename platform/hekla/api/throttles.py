"""Limits of requests per person and minute, counted in the cache. Watching jobs all day stays far below them."""

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from hekla.apps import limits

WINDOW_SECONDS = 60
REQUESTS = 3000
SIGN_INS = 60
WHAT_IFS = 240
SEARCHES = 240
UPLOAD_PIECES = 12_000
"""Of one MiB each."""


class PerPersonThrottle(BaseThrottle):
    """Counts in whole minutes, which is cheap, and exact enough to stop a runaway loop."""

    def allow_request(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        """Count this request. False if the limit of this minute is reached."""
        return limits.allows(f"api:{self.asker(request)}", most=self.most(), seconds=WINDOW_SECONDS)

    def asker(self, request: Request) -> str:
        """The key of the count: the person."""
        return str(request.user.pk)

    def most(self) -> int:
        """The limit of requests per minute."""
        return int(getattr(settings, "API_REQUESTS_A_MINUTE", REQUESTS))

    def wait(self) -> float:
        """Seconds until the next minute."""
        return limits.until_next(WINDOW_SECONDS).total_seconds()


class WhatIfThrottle(PerPersonThrottle):
    """Limits what-if requests, which run the engine. A form sends two per edit if the job would have to wait."""

    def asker(self, request: Request) -> str:
        """The person, with a separate count."""
        return f"what-if:{request.user.pk}"

    def most(self) -> int:
        """The limit of what-if requests per minute."""
        return WHAT_IFS


class UploadThrottle(PerPersonThrottle):
    """Limits requests of uploads: a large file is many of them."""

    def asker(self, request: Request) -> str:
        """The person, with a separate count."""
        return f"upload:{request.user.pk}"

    def most(self) -> int:
        """The limit of pieces per minute."""
        return UPLOAD_PIECES


class SearchThrottle(PerPersonThrottle):
    """Limits searches by name and in logs, which read many rows or bytes. The palette sends one per pause in typing."""

    def asker(self, request: Request) -> str:
        """The person, with a separate count."""
        return f"search:{request.user.pk}"

    def most(self) -> int:
        """The limit of searches per minute."""
        return SEARCHES


def may_ask_what_if(user_id: int) -> bool:
    """Count a what-if request of a page. Pages and API share one count per person. False if the limit is reached."""
    return limits.allows(f"api:what-if:{user_id}", most=WHAT_IFS, seconds=WINDOW_SECONDS)


class PerAddressThrottle(PerPersonThrottle):
    """Limits requests without a signed-in person, per client address."""

    def asker(self, request: Request) -> str:
        """The client address."""
        return f"address:{request.META.get('REMOTE_ADDR', '')}"


class SignInThrottle(PerAddressThrottle):
    """Limits password attempts: enough for all people behind one address, too few to guess passwords."""

    def asker(self, request: Request) -> str:
        """The client address, with a separate count."""
        return f"sign-in:{super().asker(request)}"

    def most(self) -> int:
        """The limit of password attempts per minute."""
        return int(getattr(settings, "API_SIGN_INS_A_MINUTE", SIGN_INS))
