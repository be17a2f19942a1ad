"""What a deployment is refused for, and what it is only told."""

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from hekla.project import checks

LONG = "4YcT0xvQm2JrPzq7bWn1KeUaGd9sLh6fXoRi3VtB-yHw8MjC5kNuSEgDpAZlFOIQ"
GOOD = {
    "SECRET_KEY": LONG,
    "PUBLIC_URL": "https://hekla.example.org",
    "ALLOWED_HOSTS": ["hekla.example.org"],
    "MAIL_IS_SET_UP": True,
}
WRONG = [
    ("SECRET_KEY", "short", "hekla.E001"),
    ("SECRET_KEY", "a" * 64, "hekla.E001"),
    ("SECRET_KEY", f"change-me-{LONG}", "hekla.E002"),
    ("SECRET_KEY", f"django-insecure-{LONG}", "hekla.E002"),
    ("PUBLIC_URL", "http://hekla.example.org", "hekla.E003"),
    ("ALLOWED_HOSTS", ["*"], "hekla.E004"),
    ("MAIL_IS_SET_UP", False, "hekla.W001"),
]


@pytest.fixture
def good(settings):
    for name, value in GOOD.items():
        setattr(settings, name, value)
    return settings


def test_good_settings_are_not_complained_of(good) -> None:
    assert checks.check() == []


@pytest.mark.parametrize(("name", "value", "told"), WRONG)
def test_each_wrong_setting_is_told_by_itself(good, name, value, told) -> None:
    setattr(good, name, value)
    assert [message.id for message in checks.check()] == [told]


def test_no_message_repeats_the_key(good) -> None:
    good.SECRET_KEY = "change-me-0123456789abcdefghijklmnop"
    assert all(good.SECRET_KEY not in f"{message.msg}{message.hint}" for message in checks.check())


def test_a_deployment_with_a_key_of_an_example_is_refused(good) -> None:
    call_command("check", "--deploy", "--fail-level", "ERROR", "--tag", "security")
    good.SECRET_KEY = "change-me"
    with pytest.raises(SystemCheckError):
        call_command("check", "--deploy", "--fail-level", "ERROR", "--tag", "security")
