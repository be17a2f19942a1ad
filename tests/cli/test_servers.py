"""Choice of the console, and which token is sent to it."""

import json
import stat

import pytest
from tests.cli.conftest import hekla

from hekla.cli.servers import ServerOptions
from hekla.client import NotConfiguredError
from hekla.client.credentials import ServerCredentials, save_credentials


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "cli-token").write_text("hk_own\n")
    (folder / "lock").write_text(json.dumps({"pid": 1, "url": "http://127.0.0.1:8123"}))
    return folder


def test_local_console_is_the_default(home):
    assert ServerOptions(home=home).server() == ServerCredentials("http://127.0.0.1:8123", "hk_own")


@pytest.mark.parametrize("lock", ["", "{", "[]", "{}"])
def test_default_address(home, lock):
    (home / "lock").write_text(lock)
    assert ServerOptions(home=home).server().url == "http://127.0.0.1:8000"


def test_a_token_is_never_sent_to_another_console(home):
    save_credentials(ServerCredentials("https://far.example", "hk_far"))
    assert ServerOptions("https://far.example/", None, home).server().token == "hk_far"
    assert ServerOptions("127.0.0.1:8123", None, home).server().token == "hk_own"
    with pytest.raises(NotConfiguredError, match="no token for http://far"):
        ServerOptions("http://far.example", None, home).server()


def test_saved_credentials_are_private():
    path = save_credentials(ServerCredentials("http://127.0.0.1:1", 'a "quoted" token'))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ServerOptions().server() == ServerCredentials("http://127.0.0.1:1", 'a "quoted" token')


@pytest.mark.parametrize("text", ["server = ", "token = 'x'", "\0"])
def test_broken_credentials_file_is_named(text):
    path = save_credentials(ServerCredentials("http://127.0.0.1:1", "x"))
    path.write_text(text)
    result = hekla("job", "list")
    assert (result.exit_code, str(path) in result.output) == (1, True)


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_login_saves_credentials(console):
    result = hekla("login", console.url, input=f"{console.token}\n")
    assert "as alice" in result.output
    assert console.token not in result.output
    assert "alice at" in hekla("whoami").output


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_wrong_token_is_not_saved(console):
    assert hekla("login", console.url, input="hk_wrong\n").exit_code == 1
    assert "no token" in hekla("whoami").output
