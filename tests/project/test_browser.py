"""The Chromium for the browser tests: which one is taken, and when one is installed."""

from pathlib import Path

import pytest

from hekla.launcher import browser


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with programs."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def add(programs: Path, name: str, script: str = "") -> Path:
    path = programs / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_browser_without_windows_comes_first(programs: Path) -> None:
    assert browser.find() is None
    other = add(programs, "chromium")
    assert browser.find() == other
    lightest = add(programs, browser.LIGHTEST)
    assert browser.find() == lightest
    assert browser.find_or_install(prefer_lightest=True) == f"Browser tests use {lightest}."


def test_other_browser_is_named_with_the_reason(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = add(programs, "chromium")
    assert browser.find_or_install(prefer_lightest=False) == f"Browser tests use {other}."
    sentence = browser.find_or_install(prefer_lightest=True)
    assert sentence.startswith(f"Browser tests use {other}, which takes almost twice the CPU")
    assert "only by the administrator" in sentence
    monkeypatch.setenv("CHROMIUM", str(other))
    assert browser.find_or_install(prefer_lightest=True) == f"Browser tests use {other}."


def test_browser_is_installed_where_that_needs_no_confirmation(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    installer = add(programs, "apt-get", 'echo "$@" >> "$0.log"; echo "no such package" >&2; exit 100')
    assert browser.find_or_install(prefer_lightest=True).endswith("the browser tests are skipped; no such package")
    commands = Path(f"{installer}.log").read_text()
    assert commands.index(browser.LIGHTEST) < commands.index(" chromium ")
    made = programs / browser.LIGHTEST
    add(programs, "apt-get", f'case "$1" in install) echo "#!/bin/sh" > {made}; /bin/chmod 755 {made};; esac')
    assert browser.find_or_install(prefer_lightest=True) == f"Browser tests use {made}."
