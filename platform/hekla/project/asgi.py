"""The ASGI application: pages and REST through Django, websockets through Channels."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hekla.project.settings")
http = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  (Django must be set up first)
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from hekla.launcher.gc_tuning import settle_with_pages  # noqa: E402
from hekla.lib.open_files import allow_most  # noqa: E402
from hekla.live.routing import urlpatterns  # noqa: E402
from hekla.project import celery  # noqa: E402, F401  (without it a wake-up would look for a broker of Celery's own)
from hekla.project.database import share_connections  # noqa: E402

share_connections(settings.DATABASES["default"], settings.DATABASE_POOL)
settle_with_pages()
allow_most()  # each open page needs one
application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(urlpatterns))),  # type: ignore[arg-type]
    }
)
