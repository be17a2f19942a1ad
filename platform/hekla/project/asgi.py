"""The ASGI application: pages and REST through Django, websockets through Channels."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hekla.project.settings")
http = get_asgi_application()

from channels.routing import ProtocolTypeRouter  # noqa: E402  (Django must be set up first)
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: E402

from hekla.launcher.gc_tuning import settle  # noqa: E402
from hekla.lib.open_files import allow_most  # noqa: E402
from hekla.live import websockets  # noqa: E402
from hekla.live.proxy.hosts import SessionHosts  # noqa: E402
from hekla.pages.admission.long_polls import LongPolls  # noqa: E402
from hekla.pages.admission.running import RunningRequests  # noqa: E402
from hekla.pages.admission.upload_pieces import UploadPieces  # noqa: E402
from hekla.pages.health.checks import HealthChecks  # noqa: E402
from hekla.project import celery  # noqa: E402, F401  (without it a wake-up would look for a broker of Celery's own)
from hekla.project.database import share_connections  # noqa: E402

share_connections(settings.DATABASES["default"], settings.DATABASE_POOL)
settle()
allow_most()  # each open page needs one
_http = HealthChecks(LongPolls(UploadPieces(RunningRequests(http))))
_routes = ProtocolTypeRouter({"http": _http, "websocket": websockets.application, "lifespan": websockets.lifespan})
# The only place that reads `X-Forwarded-*`: uvicorn itself (`--no-proxy-headers`) would believe every local process.
application = ProxyHeadersMiddleware(SessionHosts(_routes), settings.TRUSTED_PROXIES)  # type: ignore[arg-type]
