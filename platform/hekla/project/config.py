"""Typed settings from environment variables, read once. Nothing else in Hekla reads environment variables."""

from ipaddress import ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from hekla.lib.checkout import CHECKOUT


class OpenIDProvider(BaseModel):
    """An OpenID provider for sign-in. Its redirect URI is `…/accounts/from/NAME/back/`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9-]{1,40}$")
    label: str
    issuer: str = Field(pattern=r"^https?://")
    client_id: str
    client_secret: str
    domains: tuple[str, ...] = ()
    """People with a verified mail address in one of these domains can sign up without an invitation."""
    tenant: str = ""
    """Short name of the tenant that they join."""


class Config(BaseSettings):
    """`python3 manage.py up` sets the required ones for its child processes. A deployment sets them itself."""

    model_config = SettingsConfigDict(env_prefix="HEKLA_", extra="ignore", populate_by_name=True)

    home: Path = CHECKOUT / ".hekla"
    secret_key: str = Field(min_length=1)
    secret_key_fallbacks: str = ""
    """Former secret keys, with commas. They still decrypt and verify, until `reencrypt` has replaced their work."""
    debug: bool = False
    public_url: str = "http://127.0.0.1:8000"
    allowed_hosts: str = "127.0.0.1,localhost,[::1]"
    workbench_domain: str = Field("localhost", pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    """Sessions with tools in pods are at `<name>.<this domain>`, with the scheme and port of `public_url`."""
    workbench_host: str = ""
    """All sessions are at paths of this host instead, and share its origin (`lib.shared_hosts`); empty: none is."""
    hsts_seconds: int = Field(365 * 24 * 3600, ge=0)
    """How long browsers that were here use TLS only, if `public_url` begins with https; 0: do not ask them to."""
    trusted_proxies: str = ""
    """Addresses or networks of proxies, with commas. Only they can state a client's address and scheme; empty: none."""
    extenders: str = ""
    """Addresses of extenders that scheduling policies may call, with commas: `http://host:port/path`; empty: none."""
    restart_backoff: float = Field(10, ge=0, le=300)
    """Seconds that a job waits for its restart after a second failure of a pod in a row, doubled with each; 0: none."""
    keep_failed_gib: int = Field(200, ge=0, le=1_000_000)
    """GiB that the failed pods of a tenant whose jobs keep them may occupy, together; 0: none stays."""
    time_zone: str = "UTC"
    check_engine: bool = False
    """After each cycle, compare the scheduler cache with a new one. This costs as much as building the cache."""
    oidc: tuple[OpenIDProvider, ...] = ()
    """OpenID providers, as a JSON list of objects with the fields of OpenIDProvider."""
    tries_a_minute: int = 60
    """Limit per client address and minute of sign-in attempts, and of opened links and invitations."""
    session_hours: int = Field(14 * 24, ge=1)
    """Hours after a sign-in until a person must sign in again, however active they are."""
    second_factor_for: Literal["", "admins", "everybody"] = ""
    """The people who must have a second factor; empty: optional for all."""
    mail_url: str = ""
    """The mail server, as in `project.mail`; empty: no mail, and people must pass on links themselves."""
    webhooks_may_be_private: bool = False
    """Allow webhooks to private addresses, outside the public internet."""
    metrics_token: str = ""
    """The bearer token of Prometheus for `/metrics` of the web process; empty: `/metrics` is closed."""
    metrics_host: str = "127.0.0.1"
    """Address on which a worker serves its own metrics, without authentication."""
    metrics_port: int = Field(0, ge=0, le=65535)
    """Port of a worker's metrics, different for each worker on a machine; 0: none."""
    log_format: Literal["plain", "json"] = "plain"
    traces_url: str = Field("", pattern=r"^(https?://.+)?$")
    """Address of a collector of traces (OTLP over HTTP), for example `http://collector:4318/v1/traces`; empty: none."""
    heartbeat: str = ""
    """A file that a control worker touches every few seconds while its reconciliations make progress; empty: none."""
    database_pool: int = Field(16, ge=1)  # 6 for open pages (live/threads.py), the rest for requests
    """Maximum number of database connections that the threads of a web process share."""
    notify_socket: str = Field("", validation_alias="NOTIFY_SOCKET")
    """Set by systemd, for its watchdog."""
    database_url: str = Field(validation_alias="DATABASE_URL")
    valkey_url: str = Field(validation_alias="VALKEY_URL")

    @field_validator("secret_key")
    @classmethod
    def _is_long(cls, value: str) -> str:
        if len(value) < 4:  # noqa: PLR2004
            raise ValueError("HEKLA_SECRET_KEY must be a long random text")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        for proxy in _words(value):
            ip_network(proxy)  # ValueError for anything else, “*” included
        return value

    @field_validator("extenders")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        for address in _words(value):
            parts = urlsplit(address)
            is_server = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0  # ValueError for text
            if not is_server or parts.query or parts.fragment:
                raise ValueError(f"HEKLA_EXTENDERS must contain addresses like http://host:8888/path, not {address}")
        return value

    @property
    def former_keys(self) -> list[str]:
        """The former secret keys."""
        return _words(self.secret_key_fallbacks)

    @property
    def hosts(self) -> list[str]:
        """The host names that requests may use."""
        return _words(self.allowed_hosts)

    @property
    def proxies(self) -> list[str]:
        """The addresses and networks of the trusted proxies."""
        return _words(self.trusted_proxies)

    @property
    def extender_addresses(self) -> list[str]:
        """The addresses of extenders that may be called."""
        return _words(self.extenders)

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


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
