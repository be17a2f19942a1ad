"""What the environment says, read once and typed. Nothing else in Hekla reads environment variables."""

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from hekla.project.checkout import CHECKOUT


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
