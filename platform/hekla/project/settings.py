"""Django's settings: one set for the laptop and for production; what differs comes from `config`."""

import mimetypes

from django.utils.translation import gettext_lazy as _

from hekla.project import logs
from hekla.project.checkout import CHECKOUT
from hekla.project.config import Config
from hekla.project.database import from_url

CONFIG = Config()  # the environment fills it
HEKLA_HOME = CONFIG.home
PUBLIC_URL = CONFIG.public_url
VALKEY_URL = CONFIG.valkey_url

SECRET_KEY = CONFIG.secret_key
DEBUG = CONFIG.debug
CHECK_ENGINE = CONFIG.check_engine
ALLOWED_HOSTS = CONFIG.hosts
ROOT_URLCONF = "hekla.project.urls"
ASGI_APPLICATION = "hekla.project.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_cotton.apps.SimpleAppConfig",
    "django_filters",
    "django_htmx",
    "django_structlog",
    "rest_framework",
    "drf_spectacular",
    "channels",
    "axes",
    "csp",
    "hekla.apps.accounts",
    "hekla.apps.tenancy",
    "hekla.apps.outbox",
    "hekla.apps.clusters",
    "hekla.apps.queues",
    "hekla.apps.secrets",
    "hekla.apps.jobs",
    "hekla.apps.flows",
    "hekla.apps.openpai",
    "hekla.apps.batches",
    "hekla.apps.schedules",
    "hekla.apps.usage",
    "hekla.apps.demonstrations",
    "hekla.controller",
    "hekla.live",
    "hekla.project",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "hekla.project.refusals.RefusalMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [CHECKOUT / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "hekla.project.context.navigation",
            ],
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "django_cotton.cotton_loader.Loader",
                        "django.template.loaders.filesystem.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "builtins": ["django_cotton.templatetags.cotton", "hekla.project.templatetags.hekla"],
        },
    }
]
COTTON_DIR = "components"
COTTON_ISOLATE_BY_DEFAULT = True

DATABASES = {"default": from_url(CONFIG.database_url)}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": CONFIG.valkey_url}}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CONFIG.valkey_url]},
    }
}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "accounts:sign_in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "accounts:sign_in"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "accounts/locked_out.html"

SESSION_COOKIE_NAME = "hekla_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONFIG.is_https
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = [CONFIG.public_url]
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [CHECKOUT / "platform" / "hekla" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = CONFIG.time_zone

STATIC_URL = "/static/"
STATICFILES_DIRS = [CHECKOUT / "static"]
STATIC_ROOT = CHECKOUT / "static-collected"
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
mimetypes.add_type("text/javascript", ".js")

CELERY_BROKER_URL = CONFIG.broker_url
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"hekla.controller.*": {"queue": "control"}}
CELERY_BEAT_SCHEDULE = {
    "look anyway": {"task": "hekla.controller.tick", "schedule": 1.0, "options": {"queue": "control", "expires": 2}},
    "let flows go on": {"task": "hekla.flows.advance", "schedule": 1.0, "options": {"expires": 2}},
    "let demonstrations go on": {"task": "hekla.demonstrations.advance", "schedule": 1.0, "options": {"expires": 2}},
    "start what is scheduled": {"task": "hekla.schedules.start_due", "schedule": 1.0, "options": {"expires": 2}},
    "tidy up after schedules": {"task": "hekla.schedules.tidy", "schedule": 30.0, "options": {"expires": 60}},
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_ACKS_LATE = False
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, "socket_connect_timeout": 2}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "hekla.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "hekla.api.problems.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Hekla",
    "DESCRIPTION": "Jobs, queues, nodes and tenants of this Hekla console.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
}

LOGGING = logs.LOGGING
logs.configure()
