"""The files that `hekla ssh` and `hekla ssh-config` write for `ssh`."""

from pathlib import Path

import pytest

from hekla.cli import ssh_files
from hekla.cli.servers import ServerOptions


def test_consoles_do_not_share_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command for another console changes neither where `ssh JOB.hekla` leads nor which host key it expects."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ours, theirs = (ServerOptions(f"https://{name}.example", "hk_secret") for name in ("ours", "theirs"))
    included = ssh_files.write_config(ours, is_included=True)
    text = included.read_text()
    other = ssh_files.write_config(theirs, is_included=False)
    assert included.read_text() == text
    for url in (ours.server().url, theirs.server().url):
        ssh_files.write_known_host(url, f"ssh-ed25519 {url}")
    for config, key in ((included, "ssh-ed25519 https://ours.example"), (other, "ssh-ed25519 https://theirs.example")):
        place = next(line for line in config.read_text().splitlines() if "UserKnownHostsFile" in line)
        assert Path(place.split('"')[1]).read_text() == f"hekla {key}\n"


def test_the_name_of_a_host_cannot_end_its_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    lines = ssh_files.write_config(ServerOptions("https://a.example", "hk_secret"), is_included=True).read_text()
    assert '\nHost *.hekla "!*\'*"\n' in lines
    assert " ssh-proxy '%h'\n" in lines
