"""Checks of the settings of a deployment: errors and warnings."""

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from hekla.project import checks

LONG_KEY = "4YcT0xvQm2JrPzq7bWn1KeUaGd9sLh6fXoRi3VtB-yHw8MjC5kNuSEgDpAZlFOIQ"
VALID = {
    "SECRET_KEY": LONG_KEY,
    "PUBLIC_URL": "https://hekla.example.org",
    "ALLOWED_HOSTS": ["hekla.example.org"],
    "MAIL_IS_SET_UP": True,
}
INVALID = [
    ("SECRET_KEY", "short", "hekla.E001"),
    ("SECRET_KEY", "a" * 64, "hekla.E001"),
    ("SECRET_KEY", f"change-me-{LONG_KEY}", "hekla.E002"),
    ("SECRET_KEY", f"django-insecure-{LONG_KEY}", "hekla.E002"),
    ("PUBLIC_URL", "http://hekla.example.org", "hekla.E003"),
    ("ALLOWED_HOSTS", ["*"], "hekla.E004"),
    ("MAIL_IS_SET_UP", False, "hekla.W001"),
]


@pytest.fixture
def valid_settings(settings):
    for name, value in VALID.items():
        setattr(settings, name, value)
    return settings


def test_valid_settings_pass(valid_settings) -> None:
    assert checks.check() == []


@pytest.mark.parametrize(("name", "value", "message_id"), INVALID)
def test_each_invalid_setting_is_reported(valid_settings, name, value, message_id) -> None:
    setattr(valid_settings, name, value)
    assert [message.id for message in checks.check()] == [message_id]


def test_messages_do_not_contain_the_key(valid_settings) -> None:
    valid_settings.SECRET_KEY = "change-me-0123456789abcdefghijklmnop"
    assert all(valid_settings.SECRET_KEY not in f"{message.msg}{message.hint}" for message in checks.check())


def test_deployment_with_an_example_key_is_refused(valid_settings) -> None:
    call_command("check", "--deploy", "--fail-level", "ERROR", "--tag", "security")
    valid_settings.SECRET_KEY = "change-me"
    with pytest.raises(SystemCheckError):
        call_command("check", "--deploy", "--fail-level", "ERROR", "--tag", "security")
