"""The host that all sessions share is none that could reach the console, or be reached from it."""

import pytest

from hekla.lib.shared_hosts import checked_host

CONSOLE = "https://hekla.example.org"


@pytest.mark.parametrize(
    ("host", "console"),
    [
        ("", "http://10.0.0.7:8000"),
        ("tools.example.org", CONSOLE),
        ("hekla-tools.example.net", f"{CONSOLE}:8443"),
        ("tools.localhost", "http://127.0.0.1:8000"),
        ("tools.localhost", "http://localhost:8000"),
    ],
)
def test_hosts_of_their_own_are_accepted(host: str, console: str) -> None:
    assert checked_host(host, console=console, domain="localhost", names=["127.0.0.1", "localhost", "*"]) == host


@pytest.mark.parametrize(
    ("host", "change", "why"),
    [
        ("hekla.example.org", {}, "is a host of the console"),
        ("console.example.net", {}, "is a host of the console"),
        ("tools.hekla.example.org", {}, "is above or below “hekla.example.org”"),
        ("example.org", {}, "is above or below “hekla.example.org”"),
        ("tools.example.com", {}, "is above or below “example.com”"),
        ("hekla.example.org:8443", {}, "is no host name"),
        ("tools.example.org/tools", {}, "is no host name"),
        ("Tools.example.org", {}, "is no host name"),
        ("tools.example.org.", {}, "is no host name"),
        ("tools..example.org", {}, "is no host name"),
        ("tools.example.org", {"domain": "pods.example.com"}, "HEKLA_WORKBENCH_DOMAIN is set too"),
        ("tools.example.org", {"console": "http://hekla.example.org"}, "must begin with https"),
        ("localhost", {"console": "http://127.0.0.1:8000"}, "is a host of the console"),
    ],
)
def test_hosts_that_share_something_with_the_console_end_its_start(host: str, change: dict[str, str], why: str) -> None:
    facts = {"console": CONSOLE, "domain": "localhost"} | change
    with pytest.raises(ValueError, match=f"HEKLA_WORKBENCH_HOST.*{why}"):
        checked_host(host, **facts, names=["localhost", "console.example.net:8000", ".example.com"])
