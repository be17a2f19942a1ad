"""A database URL as Django's settings."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


def from_url(url: str) -> dict[str, Any]:
    """`postgresql://user:password@host:port/name?host=/socket/folder` as an entry of DATABASES."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": query.pop("user", unquote(parts.username or "")),
        "PASSWORD": query.pop("password", unquote(parts.password or "")),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": query.pop("port", str(parts.port or "")),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": query,
    }
