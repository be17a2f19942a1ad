"""A real OpenID provider as a process: Django OAuth Toolkit on SQLite, with one client and a few users.

`python -P openid_provider.py PORT FOLDER REDIRECT_URI` prints "ready" when it listens.
"""

import sys
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings

CLIENT_ID, CLIENT_SECRET, PASSWORD = "hekla", "a-secret-of-both", "provider-password"
PEOPLE = {  # user name: address, and whether the provider has verified it
    "dora": ("dora@example.org", True),
    "emil": ("emil@elsewhere.net", True),
    "mallory": ("mallory@example.org", False),
}
LOGIN = '<form method="post">{% csrf_token %}{{ form }}<button>Sign in there</button></form>'


def configure(port: int, folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    settings.configure(
        SECRET_KEY="of the provider",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        USE_TZ=True,
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "provider.sqlite3"}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {"loaders": [("django.template.loaders.locmem.Loader", {"login.html": LOGIN})]},
            }
        ],
        LOGIN_URL="/login/",
        SESSION_COOKIE_NAME="provider_session",
        CSRF_COOKIE_NAME="provider_csrf",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": pem,
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}/o",
            "SCOPES": {"openid": "who", "profile": "name", "email": "address"},
            "PKCE_REQUIRED": True,
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.Validator",
        },
    )
    django.setup()


def fill(redirect_uri: str) -> None:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from oauth2_provider.models import Application

    call_command("migrate", verbosity=0)
    for name, (email, _verified) in PEOPLE.items():
        User.objects.create_user(name, email, PASSWORD, first_name=name.title())
    Application.objects.create(
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris=redirect_uri,
        skip_authorization=True,
        algorithm=Application.RS256_ALGORITHM,
    )


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    sys.modules["openid_provider"] = sys.modules["__main__"]
    __name__ = "openid_provider"
    configure(int(sys.argv[1]), Path(sys.argv[2]))

    from django.contrib.auth.views import LoginView
    from django.core.wsgi import get_wsgi_application
    from django.urls import include, path
    from oauth2_provider.oauth2_validators import OAuth2Validator

    class Validator(OAuth2Validator):
        oidc_claim_scope = None

        def get_additional_claims(self, request):
            email, verified = PEOPLE[request.user.username]
            return {
                "preferred_username": request.user.username,
                "name": request.user.first_name,
                "email": email,
                "email_verified": verified,
            }

    urlpatterns = [
        path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
        path("login/", LoginView.as_view(template_name="login.html")),
    ]
    fill(sys.argv[3])
    server = make_server("127.0.0.1", int(sys.argv[1]), get_wsgi_application(), handler_class=Quiet)
    print("ready", flush=True)
    server.serve_forever()
