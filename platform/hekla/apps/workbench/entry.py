"""How a person enters the origin of a session: a ticket of the console that works once, then a cookie of that origin.

Both are bound to the session, the person, and the login session or token that asked for the ticket. The console's own
cookies never reach that origin. The cookie is encrypted: tools get no cookie of ours, and still nobody could read it.
"""

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from hekla.apps.ciphers import cipher
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import Refused
from hekla.domain.tools import Tool
from hekla.lib.encryption import DecryptionError

TICKET_SECONDS = 30
ENTER_PATH = "/.hekla/enter"
_PURPOSE = "hekla: entry to sessions"
_LONGEST = 2048


@dataclass(frozen=True, slots=True)
class EntryPass:
    """Who may enter which session. `login`: the key of the login session; `token`: the id of the API token, if any.

    `guest`: the invitation of a person who did not open it. `browser`: of the one that entered, where all sessions
    share a host (`browsers`).
    """

    slug: str
    person: int
    login: str | None = None
    token: int | None = None
    guest: int | None = None
    browser: str = ""

    @property
    def browser_cookie(self) -> str:
        """The value of the cookie without which this pass does not count on a shared host."""
        return f"{self.person}.{self.browser}"

    def is_of(self, browser: str) -> bool:
        """Whether the pass counts in the browser with this cookie. Where each session has a host, in any."""
        return not settings.WORKBENCH_HOST or bool(self.browser and browser == self.browser_cookie)

    def encrypt(self) -> str:
        """As the value of a cookie."""
        return cipher(_PURPOSE).encrypt(json.dumps(asdict(self))).decode()

    @staticmethod
    def decrypt(text: str) -> "EntryPass | None":
        """The pass in the value of a cookie; None if it is damaged, or not ours."""
        if not text or len(text) > _LONGEST:
            return None
        try:
            return EntryPass(**json.loads(cipher(_PURPOSE).decrypt(text.encode())))
        except (DecryptionError, ValueError, TypeError):
            return None


def issue_ticket(
    session: ToolSession, *, login: str | None, token: int | None, person: int = 0, guest: int | None = None
) -> str:
    """A ticket for the owner of the session, or by an invitation for another person. It works once, within 30 seconds.

    Raises Refused if it cannot be stored now, or if there is neither a login session nor a token.
    """
    if login is None and token is None:
        raise Refused(_("Sign in again to open this session."))
    ticket = secrets.token_urlsafe(24)
    entry = EntryPass(session.slug, person or session.owner_id, login, token, guest)
    try:
        cache.set(_key(ticket), entry.encrypt(), timeout=TICKET_SECONDS)
    except RedisError as error:
        raise Refused(_("The session cannot be opened now. Try again in a moment.")) from error
    return ticket


def redeem(ticket: str, slug: str) -> EntryPass | None:
    """The pass of a ticket for this session; None if it is unknown, used, too old, or of another session.

    Raises RedisError.
    """
    stored = cache.get(_key(ticket))
    if not isinstance(stored, str) or not cache.delete(_key(ticket)):  # of several at once, one deletes it
        return None
    entry = EntryPass.decrypt(stored)
    return entry if entry is not None and entry.slug == slug else None


def cookie_name() -> str:
    """The name of the cookie. With the domain in it, two consoles below one domain do not mix theirs up."""
    kind = "Secure" if settings.WORKBENCH_HOST else "Host"
    return f"{f'__{kind}-' if settings.SESSION_COOKIE_SECURE else ''}hekla-session-{_digest()}"


def browser_cookie_name() -> str:
    """The name of the cookie of a browser on the host that all sessions share; empty if each has its own."""
    if not settings.WORKBENCH_HOST:
        return ""
    return f"{'__Host-' if settings.SESSION_COOKIE_SECURE else ''}hekla-browser-{_digest()}"


def mount(slug: str) -> str:
    """The path below which a session is; empty if it has a host of its own."""
    return f"/{slug}" if settings.WORKBENCH_HOST else ""


def entry_url(session: ToolSession, ticket: str, console: str) -> str:
    """The URL that a browser opens with a ticket. `console`: the host, with its port if any, of the console there."""
    port = urlsplit(f"//{console}").port
    name = settings.WORKBENCH_HOST or f"{session.slug}.{settings.WORKBENCH_DOMAIN}"
    return f"{scheme()}://{name}{f':{port}' if port else ''}{mount(session.slug)}{ENTER_PATH}?ticket={ticket}"


def shared_host_notices(session: ToolSession) -> list[str]:
    """What a person must know before they enter a session on a shared host; nothing if each has its own."""
    if not settings.WORKBENCH_HOST:
        return []
    apart = _(
        "All sessions of this console share the host %(host)s. The program of this one can read and use every other "
        "session whose page is still open in your browser. Only one is open at a time: opening this one ends your "
        "other session there and deletes what its pages stored. Close its tabs first."
    ) % {"host": settings.WORKBENCH_HOST}
    below = _(
        "The program must work below a path: its page is at %(path)s. It gets requests without this part, and finds "
        "it in the header X-Forwarded-Prefix."
    ) % {"path": f"{mount(session.slug)}/"}
    return [apart, below] if session.tool == Tool.PORT else [apart]


def scheme() -> str:
    """The scheme of all sessions: that of the console."""
    return urlsplit(settings.PUBLIC_URL).scheme


def lacks_domain() -> bool:
    """Whether sessions have no domain or host of their own. The default is this machine, for browsers on it.

    Above or below the console's domain, pages of pods could set cookies that its pages get.
    """
    if settings.WORKBENCH_HOST:  # checked when the console starts
        return False
    host, domain = urlsplit(settings.PUBLIC_URL).hostname or "", settings.WORKBENCH_DOMAIN
    if domain == "localhost":
        return not (host in ("localhost", "::1") or host.startswith("127."))
    return f".{domain}".endswith(f".{host}") or f".{host}".endswith(f".{domain}")


def _digest() -> str:
    return hashlib.sha256((settings.WORKBENCH_HOST or settings.WORKBENCH_DOMAIN).encode()).hexdigest()[:16]


def _key(ticket: str) -> str:
    return f"workbench:ticket:{hashlib.sha256(ticket.encode()).hexdigest()}"
