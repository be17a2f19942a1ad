"""What the environment says, read once and typed. Nothing else in Hekla reads environment variables."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from hekla.lib.checkout import CHECKOUT


class OpenIDProvider(BaseModel):
    """A directory that people come from. It sends them back to `…/accounts/from/NAME/back/`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9-]{1,40}$")
    label: str
    issuer: str = Field(pattern=r"^https?://")
    client_id: str
    client_secret: str
    domains: tuple[str, ...] = ()
    """Who has a verified address in one of these may come without an invitation."""
    tenant: str = ""
    """The tenant that they then become members of (short name)."""


class Config(BaseSettings):
    """`python3 manage.py up` sets all of these for its children; a deployment sets them itself."""

    model_config = SettingsConfigDict(env_prefix="HEKLA_", extra="ignore", populate_by_name=True)

    home: Path = CHECKOUT / ".hekla"
    secret_key: str = Field(min_length=1)
    debug: bool = False
    public_url: str = "http://127.0.0.1:8000"
    allowed_hosts: str = "127.0.0.1,localhost,[::1]"
    time_zone: str = "UTC"
    check_engine: bool = False
    """After each decision, hold what the engine keeps against a fresh look. It costs as much as one."""
    oidc: tuple[OpenIDProvider, ...] = ()
    """OpenID providers, as a JSON list of objects with the fields of OpenIDProvider."""
    tries_a_minute: int = 60
    """How often a minute one address may try to sign in, or open links and invitations."""
    second_factor_for: Literal["", "admins", "everybody"] = ""
    """Who must have a second factor; empty: whoever wants one."""
    mail_url: str = ""
    """The mail server, as in `project.mail`; empty: none, and links are handed over by people."""
    webhooks_may_be_private: bool = False
    """Let people's webhooks lead to addresses that are not of the public internet."""
    metrics_token: str = ""
    """What Prometheus sends as a bearer token to read `/metrics` of the web process; empty: nobody reads it."""
    metrics_host: str = "127.0.0.1"
    """Where a worker tells its own figures, to whoever reaches that address."""
    metrics_port: int = Field(0, ge=0, le=65535)
    """By which port, another one for each worker of a machine; 0: it tells none."""
    database_pool: int = Field(16, ge=1)  # six for open pages (live/threads.py), the rest for requests
    """The most connections to the database that a web process shares among its threads."""
    database_url: str = Field(validation_alias="DATABASE_URL")
    valkey_url: str = Field(validation_alias="VALKEY_URL")

    @field_validator("secret_key")
    @classmethod
    def _is_long(cls, value: str) -> str:
        if len(value) < 4:  # noqa: PLR2004
            raise ValueError("HEKLA_SECRET_KEY must be a long random text")
        return value

    @property
    def hosts(self) -> list[str]:
        """Host names that requests may name."""
        return [host.strip() for host in self.allowed_hosts.split(",") if host.strip()]

    @property
    def is_https(self) -> bool:
        """Whether people reach the console over TLS."""
        return self.public_url.startswith("https:")

    @property
    def broker_url(self) -> str:
        """`valkey_url` as Celery spells it: a socket is `redis+socket:///path?virtual_host=0`."""
        if not self.valkey_url.startswith("unix:"):
            return self.valkey_url
        return f"redis+socket://{urlsplit(self.valkey_url).path}?virtual_host=0"
