"""Django's settings, the same for a laptop and for production. Differences come from `config`."""

import mimetypes
import sys
from datetime import timedelta

from csp.constants import NONCE
from django.utils.translation import gettext_lazy as _

from hekla.controller.periodic import BEAT_SCHEDULE
from hekla.lib import tracing
from hekla.lib.checkout import CHECKOUT
from hekla.lib.shared_hosts import checked_host
from hekla.project import logs, mail
from hekla.project.config import Config
from hekla.project.database import from_url
from hekla.project.static_version import static_version

CONFIG = Config()  # from environment variables
HEKLA_HOME, HELP_FOLDER = CONFIG.home, CHECKOUT / "platform" / "help"
PUBLIC_URL, WORKBENCH_DOMAIN = CONFIG.public_url, CONFIG.workbench_domain
VALKEY_URL = CONFIG.valkey_url

SECRET_KEY, SECRET_KEY_FALLBACKS = CONFIG.secret_key, CONFIG.former_keys
DEBUG, CHECK_ENGINE = CONFIG.debug, CONFIG.check_engine
ALLOWED_HOSTS = CONFIG.hosts
WORKBENCH_HOST = checked_host(CONFIG.workbench_host, console=PUBLIC_URL, domain=WORKBENCH_DOMAIN, names=ALLOWED_HOSTS)
TRUSTED_PROXIES, EXTENDERS = CONFIG.proxies, CONFIG.extender_addresses
KEEP_FAILED_BYTES = CONFIG.keep_failed_gib * 2**30
RESTART_BACKOFF = timedelta(seconds=CONFIG.restart_backoff)
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
    "django_structlog",
    "rest_framework",
    "drf_spectacular",
    "channels",
    "axes",
    "csp",
    "hekla.apps.accounts",
    "hekla.apps.signin",
    "hekla.apps.login_sessions",
    "hekla.apps.impersonation",
    "hekla.apps.tenancy",
    "hekla.apps.invitations",
    "hekla.apps.identities",
    "hekla.apps.event_log",
    "hekla.apps.clusters",
    "hekla.apps.queues",
    "hekla.apps.quotas",
    "hekla.apps.priorities",
    "hekla.apps.secrets",
    "hekla.apps.jobs",
    "hekla.apps.job_metrics",
    "hekla.apps.external_pods",
    "hekla.apps.flows",
    "hekla.apps.presets",
    "hekla.apps.gallery",
    "hekla.apps.openpai",
    "hekla.apps.batches",
    "hekla.apps.schedules",
    "hekla.apps.forecasts",
    "hekla.apps.cycle_records",
    "hekla.apps.policy_lab",
    "hekla.apps.usage",
    "hekla.apps.workbench",
    "hekla.apps.idleness",
    "hekla.apps.prices",
    "hekla.apps.measures",
    "hekla.apps.alerts",
    "hekla.apps.announcements",
    "hekla.apps.reports",
    "hekla.apps.sharing",
    "hekla.apps.notifications",
    "hekla.apps.demonstrations",
    "hekla.apps.search",
    "hekla.controller",
    "hekla.live",
    "hekla.pages",
    "hekla.launcher",
    "hekla.project",
]

MIDDLEWARE = [
    "hekla.pages.frame.headers.add_headers",
    "django.middleware.security.SecurityMiddleware",
    "hekla.pages.frame.static_files.versioned_static_files",
    "servestatic.middleware.ServeStaticMiddleware",
    "hekla.pages.metrics.requests.RequestFigures",
    "django.middleware.gzip.GZipMiddleware",  # below ServeStatic: it would truncate static files
    "hekla.api.etags.ETagMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "hekla.pages.frame.visible_text.VisibleTextMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "hekla.pages.admission.callers.CallerMiddleware",
    "hekla.pages.login_sessions.middleware.LoginSessionMiddleware",
    "hekla.pages.signin.middleware.SecondFactorRule",
    "hekla.pages.impersonation.middleware.ImpersonationMiddleware",
    "hekla.pages.frame.time_zone.TimeZoneMiddleware",
    "hekla.pages.frame.rights_once.RightsReadOnce",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "hekla.pages.frame.content_policy.ContentPolicyMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "hekla.pages.frame.errors.RefusalMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "hekla.pages.frame.template_engine.HeklaTemplates",
        "NAME": "django",
        "DIRS": [CHECKOUT / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "hekla.pages.frame.context.navigation",
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
            "builtins": [
                "django_cotton.templatetags.cotton",
                "hekla.pages.clusters.templatetags.clusters",
                "hekla.pages.frame.templatetags.hekla",
                "hekla.pages.jobs.templatetags.jobs",
                "hekla.pages.queues.templatetags.queues",
            ],
        },
    }
]
COTTON_DIR = "components"
COTTON_ISOLATE_BY_DEFAULT = True

DATABASES = {"default": from_url(CONFIG.database_url)}
DATABASE_POOL = CONFIG.database_pool
CACHES = {
    "default": {"BACKEND": "hekla.apps.shared_cache.SharedCache", "LOCATION": CONFIG.valkey_url},
    # Parts of the page frame that are equal for many people. Per process, because a process has one set of templates.
    "frame": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "TIMEOUT": None,
        "OPTIONS": {"MAX_ENTRIES": 1000},
    },
}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    *("axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"),
    "hekla.apps.accounts.people_by_id.PeopleById",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = LOGOUT_REDIRECT_URL = "accounts:sign_in"
LOGIN_REDIRECT_URL = "home"
OIDC_PROVIDERS, SECOND_FACTOR_FOR = CONFIG.oidc, CONFIG.second_factor_for
AXES_FAILURE_LIMIT, AXES_COOLOFF_TIME = 10, 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "hekla.apps.signin.limits.locked_out"
TRIES_A_MINUTE = CONFIG.tries_a_minute

SESSION_ENGINE = "hekla.apps.login_sessions.store"
SESSION_HOURS = CONFIG.session_hours
SESSION_COOKIE_NAME = "__Host-hekla_session" if CONFIG.is_https else "hekla_session"  # no neighbour's page can set it
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONFIG.is_https
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = [CONFIG.public_url]
HSTS_SECONDS = CONFIG.hsts_seconds if CONFIG.is_https else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY, X_FRAME_OPTIONS = "same-origin", "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'", NONCE],  # only on pages with the YAML editor, which writes its own styles
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

_MAIL = mail.from_url(CONFIG.mail_url)
MAIL_IS_SET_UP = _MAIL.is_set_up
EMAIL_BACKEND, EMAIL_HOST, EMAIL_PORT = _MAIL.backend, _MAIL.host, _MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL.user, _MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL, EMAIL_FILE_PATH = _MAIL.is_tls, _MAIL.is_ssl, _MAIL.folder
DEFAULT_FROM_EMAIL, EMAIL_TIMEOUT = _MAIL.sender, 10

LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [CHECKOUT / "platform" / "hekla" / "locale"]
USE_I18N = USE_TZ = True
LANGUAGE_CODE, TIME_ZONE = "en", CONFIG.time_zone
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False  # no log shows it, and finding it takes a while

SERVESTATIC_STATIC_PREFIX = "/static/"
STATIC_VERSION = static_version(CHECKOUT / "static")
STATIC_URL = SERVESTATIC_STATIC_PREFIX if DEBUG else f"{SERVESTATIC_STATIC_PREFIX}{STATIC_VERSION}/"
STATICFILES_DIRS = [CHECKOUT / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
]
STATIC_ROOT = CHECKOUT / "static-collected"
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
mimetypes.add_type("text/javascript", ".js")

HEARTBEAT_FILE, NOTIFY_SOCKET = CONFIG.heartbeat, CONFIG.notify_socket
METRICS_HOST, METRICS_PORT, METRICS_TOKEN = CONFIG.metrics_host, CONFIG.metrics_port, CONFIG.metrics_token
WEBHOOKS_MAY_BE_PRIVATE = CONFIG.webhooks_may_be_private

CELERY_BROKER_URL = CONFIG.broker_url
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "default"
ASK_CLUSTERS = "hekla.simulation.federation.ask"
"""The function that finds the best cluster of a job. A setting, because `apps` cannot import the engine."""

CELERY_TASK_ROUTES = {"hekla.controller.*": {"queue": "control"}}
CELERY_BEAT_SCHEDULE = BEAT_SCHEDULE
CELERY_DB_REUSE_MAX = sys.maxsize  # each thread keeps its connection; `celery.py` checks it
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_ACKS_LATE = False
# An idle worker polls every `polling_interval` seconds, which must be less than `socket_timeout`. It looks for messages
# of dead workers once a minute, because it restores them after an hour.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    **{"socket_timeout": 5, "socket_connect_timeout": 2},
    **{"polling_interval": 4, "unacked_restore_interval": 60, "reauth_check_interval": 60},
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

FORM_RENDERER = "hekla.pages.frame.widgets.ControlRenderer"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "hekla.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["hekla.api.renderers.ApiRenderer"],
    "DEFAULT_SCHEMA_CLASS": "hekla.api.openapi.ApiSchema",
    "EXCEPTION_HANDLER": "hekla.api.problems.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Hekla",
    "DESCRIPTION": (
        "Jobs, queues, nodes and tenants of this Hekla console. Every response has an `ETag`. "
        "Send it in `If-None-Match` to get 304 if nothing has changed, "
        "or in `If-Match` to get 412 if somebody else has changed the resource."
    ),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,  # requests are stricter: no read-only and no unknown fields
}

LOGGING = logs.LOGGING
logs.configure(CONFIG.log_format)
tracing.configure(CONFIG.traces_url)
