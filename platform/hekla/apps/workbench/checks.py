"""The check of a deployment's settings that concerns sessions."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register


@register(Tags.security, deploy=True)
def check(app_configs: object = None, **_options: Any) -> list[CheckMessage]:  # noqa: ANN401, ARG001
    """A warning if sessions share a host: whoever deploys the console decides that. Unsafe hosts end its start."""
    if not settings.WORKBENCH_HOST:
        return []
    text = f"HEKLA_WORKBENCH_HOST: pages of all pods share the origin of {settings.WORKBENCH_HOST}."
    hint = "With a wildcard domain in HEKLA_WORKBENCH_DOMAIN each session has an origin of its own."
    return [Warning(text, hint, id="hekla.W002")]
