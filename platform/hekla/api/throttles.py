"""So many requests a minute for one person, counted in the cache; whoever watches jobs all day stays far below."""

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from hekla.lib import clock

WINDOW_SECONDS = 60
REQUESTS = 3000
SIGN_INS = 60


class PerPerson(BaseThrottle):
    """Counts in whole minutes: cheap, and exact enough against a loop that went wrong."""

    def allow_request(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        """Count this request; False when the minute is used up."""
        minute = int(clock.now().timestamp()) // WINDOW_SECONDS
        key = f"api:{self.asker(request)}:{minute}"
        try:
            cache.add(key, 0, timeout=2 * WINDOW_SECONDS)
            return cache.incr(key) <= self.most()
        except (RedisError, ValueError):  # the count is lost, or the server that keeps it: nobody is locked out for it
            return True

    def asker(self, request: Request) -> str:
        """For whom it is counted."""
        return str(request.user.pk)

    def most(self) -> int:
        """How many requests a minute are answered."""
        return int(getattr(settings, "API_REQUESTS_A_MINUTE", REQUESTS))

    def wait(self) -> float:
        """Seconds until the next minute."""
        return WINDOW_SECONDS - clock.now().timestamp() % WINDOW_SECONDS


class PerAddress(PerPerson):
    """The same for those who are not signed in, by the address that they send from."""

    def asker(self, request: Request) -> str:
        """The address."""
        return f"address:{request.META.get('REMOTE_ADDR', '')}"


class SignIns(PerAddress):
    """Enough passwords for everybody behind one address, and few for somebody who guesses."""

    def asker(self, request: Request) -> str:
        """The address, counted apart."""
        return f"sign-in:{super().asker(request)}"

    def most(self) -> int:
        """How many passwords a minute are looked at."""
        return int(getattr(settings, "API_SIGN_INS_A_MINUTE", SIGN_INS))
