"""The URL of the mail server."""

import pytest

from hekla.project.mail import Mail, from_url

B = "django.core.mail.backends"


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("", Mail(f"{B}.dummy.EmailBackend")),
        ("console:", Mail(f"{B}.console.EmailBackend")),
        (
            "file:///var/mail%20box?from=a@b.c",
            Mail(f"{B}.filebased.EmailBackend", folder="/var/mail box", sender="a@b.c"),
        ),
        (
            "smtp://me:p%40ss@mail.example.org?from=hekla@example.org",
            Mail(
                f"{B}.smtp.EmailBackend", "mail.example.org", 587, "me", "p@ss", is_tls=True, sender="hekla@example.org"
            ),
        ),
        ("smtp://localhost:25?tls=no", Mail(f"{B}.smtp.EmailBackend", "localhost", 25)),
        ("smtps://mail.example.org", Mail(f"{B}.smtp.EmailBackend", "mail.example.org", 465, is_ssl=True)),
    ],
)
def test_mail_url_is_read(url: str, want: Mail) -> None:
    assert from_url(url) == want
    assert want.is_set_up == bool(url)


@pytest.mark.parametrize("url", ["smtp:", "http://mail.example.org", "mail.example.org:25"])
def test_invalid_mail_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="HEKLA_MAIL_URL"):
        from_url(url)
