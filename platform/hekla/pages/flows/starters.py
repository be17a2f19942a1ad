"""The initial manifest of the page that starts a flow: the tenant's templates in sequence, or an example."""

from hekla.apps.flows import selectors
from hekla.apps.flows.facts import spec_of
from hekla.apps.flows.models import Flow
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.flows import FlowSpec

_MOST = 3
_MAIN = {"name": "main", "resources": {"cpu": "100m", "memory": "64Mi"}}


def again(flow: Flow, tenant: Tenant) -> str:
    """The manifest of an existing flow under a free name."""
    spec = spec_of(flow)
    return formats.dump_flow(spec.model_copy(update={"name": selectors.free_name(tenant, spec.name)}))


def first(tenant: Tenant) -> str:
    """A manifest of the tenant's first three templates in sequence, or an example if it has none."""
    names = list(selectors.templates_of(tenant).order_by("id").values_list("name", flat=True)[:_MOST])
    steps = [{"name": name, "depends_on": names[place - 1 : place]} for place, name in enumerate(names)] or _example()
    return formats.dump_flow(FlowSpec.parse({"name": selectors.free_name(tenant, "flow"), "steps": steps}))


def _example() -> list[dict[str, object]]:
    """Two steps that print a word each."""
    words = {"prepare": "preparing", "train": "training"}
    jobs = {name: {"tasks": [{**_MAIN, "command": ["echo", word]}]} for name, word in words.items()}
    return [
        {"name": name, "job": job, "depends_on": ["prepare"] if name != "prepare" else []} for name, job in jobs.items()
    ]
