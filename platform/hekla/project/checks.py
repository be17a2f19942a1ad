"""Checks of production settings. Deployments run them first: `python3 manage.py check --deploy`."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

LEAST_KEY = 32
_PLACEHOLDERS = ("change", "django-insecure", "secret", "example", "insecure", "replace", "test", "todo")


@register(Tags.security, deploy=True)
def check(app_configs: object = None, **_options: Any) -> list[CheckMessage]:  # noqa: ANN401, ARG001
    """All problems of the deployment's settings."""
    return [*_key(settings.SECRET_KEY), *_address(settings.PUBLIC_URL), *_hosts(settings.ALLOWED_HOSTS), *_mail()]


def _key(key: str) -> Iterable[CheckMessage]:
    """Problems of the secret key, which encrypts secrets and signs sessions: a guess gives access to every account."""
    hint = "Make one: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"
    if len(key) < LEAST_KEY or len(set(key)) < LEAST_KEY // 4:
        yield Error(f"HEKLA_SECRET_KEY is shorter or simpler than {LEAST_KEY} random letters.", hint, id="hekla.E001")
    elif word := next((word for word in _PLACEHOLDERS if key.lower().startswith(word)), ""):
        yield Error(f"HEKLA_SECRET_KEY begins with “{word}”: it looks like an example's.", hint, id="hekla.E002")


def _address(url: str) -> Iterable[CheckMessage]:
    if not url.startswith("https://"):
        yield Error(
            "HEKLA_PUBLIC_URL does not begin with https://, so passwords and sessions go over the line as they are.",
            "Put a proxy with TLS before the console, and name its address.",
            id="hekla.E003",
        )


def _hosts(hosts: list[str]) -> Iterable[CheckMessage]:
    if "*" in hosts:
        yield Error("HEKLA_ALLOWED_HOSTS allows any name.", "Name those of the console.", id="hekla.E004")


def _mail() -> Iterable[CheckMessage]:
    if not settings.MAIL_IS_SET_UP:
        yield Warning(
            "HEKLA_MAIL_URL is not set: people hand over links, and no notification is sent by mail.", id="hekla.W001"
        )
