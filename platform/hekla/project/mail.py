"""Mail settings from a URL."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

_BACKENDS = "django.core.mail.backends"
_PORTS = {"smtp": 587, "smtps": 465}
_SENDER = "hekla@localhost"


@dataclass(frozen=True, slots=True)
class Mail:
    """The mail server or backend. `sender`: the From address of all messages."""

    backend: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    is_tls: bool = False
    is_ssl: bool = False
    folder: str | None = None
    sender: str = _SENDER

    @property
    def is_set_up(self) -> bool:
        """Whether messages are delivered at all."""
        return not self.backend.endswith("dummy.EmailBackend")


def from_url(url: str) -> Mail:
    """`smtp://user:password@host:587?from=hekla@example.org` (STARTTLS unless `tls=no`), `smtps://…`, `console:`, or
    `file:///folder`; empty: no mail. Raises ValueError.
    """
    parts = urlsplit(url)
    sender = dict(parse_qsl(parts.query)).get("from", _SENDER)
    match parts.scheme:
        case "":
            return Mail(f"{_BACKENDS}.dummy.EmailBackend")
        case "console":
            return Mail(f"{_BACKENDS}.console.EmailBackend", sender=sender)
        case "file":
            return Mail(f"{_BACKENDS}.filebased.EmailBackend", folder=unquote(parts.path), sender=sender)
        case "smtp" | "smtps" if parts.hostname:
            return Mail(
                f"{_BACKENDS}.smtp.EmailBackend",
                host=parts.hostname,
                port=parts.port or _PORTS[parts.scheme],
                user=unquote(parts.username or ""),
                password=unquote(parts.password or ""),
                is_tls=parts.scheme == "smtp" and dict(parse_qsl(parts.query)).get("tls") != "no",
                is_ssl=parts.scheme == "smtps",
                sender=sender,
            )
    raise ValueError("HEKLA_MAIL_URL must be smtp://…, smtps://…, console: or file:///folder")
