"""Only the proxies that the settings name can state the address and scheme of a client."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from pydantic import ValidationError
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from hekla.launcher.web_server import configuration
from hekla.project.config import Config

CLIENT, PROXY = "203.0.113.7", "127.0.0.1"


@pytest.mark.parametrize(
    ("trusted", "sender", "stated", "expected"),
    [
        ("", PROXY, CLIENT, f"{PROXY} http"),
        ("10.0.0.0/8", PROXY, CLIENT, f"{PROXY} http"),
        ("127.0.0.1", PROXY, CLIENT, f"{CLIENT} https"),
        ("10.0.0.0/8, 127.0.0.1", "10.1.2.3", CLIENT, f"{CLIENT} https"),
        ("10.0.0.0/8", "10.1.2.3", f"198.51.100.1, {CLIENT}, 10.4.4.4", f"{CLIENT} https"),
        ("fd00::/8", "fd00::1", "2001:db8::5", "2001:db8::5 https"),
    ],
)
def test_client_address_is_believed_from_named_proxies(
    trusted: str, sender: str, stated: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEKLA_TRUSTED_PROXIES", trusted)
    found = []

    async def note(scope: Any, _receive: Any, _send: Any) -> None:
        found.append(f"{scope['client'][0]} {scope['scheme']}")

    headers = [(b"x-forwarded-for", stated.encode()), (b"x-forwarded-proto", b"https")]
    scope: Any = {"type": "http", "client": (sender, 1), "scheme": "http", "headers": headers}
    receive: Any = None  # neither is used
    async_to_sync(ProxyHeadersMiddleware(note, Config().proxies))(scope, receive, receive)
    assert found == [expected]


def test_server_itself_believes_no_proxy() -> None:
    assert not configuration("127.0.0.1", 8000).proxy_headers


@pytest.mark.parametrize("proxies", ["*", "proxy.example.org", "10.0.0.1/8", "127.0.0.1 10.0.0.1"])
def test_other_than_addresses_and_networks_is_refused(proxies: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEKLA_TRUSTED_PROXIES", proxies)
    with pytest.raises(ValidationError, match="trusted_proxies"):
        Config()


@pytest.mark.parametrize("proxies", ["", "127.0.0.1", "::1, 10.0.0.0/8,fd00::/8"])
def test_addresses_and_networks_are_accepted(proxies: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEKLA_TRUSTED_PROXIES", proxies)
    assert Config().proxies == [one.strip() for one in proxies.split(",") if one.strip()]
