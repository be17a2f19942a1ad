"""OpenPAI's views of queues, which it calls virtual clusters."""

from collections import defaultdict
from http import HTTPStatus
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.openpai.errors import OpenpaiError
from hekla.api.openpai.views import OpenpaiView
from hekla.api.views import person
from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.domain.frameworks.openpai import DEVICE
from hekla.domain.resources import Resources
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import QueueUsage

_MiB = 2**20


class VirtualClusterListView(OpenpaiView):
    """The list of queues."""

    def get(self, request: Request) -> Response:
        """The queues that the person's tenants can use, by name."""
        return Response(_describe(person(request)))


class VirtualClusterView(OpenpaiView):
    """One queue."""

    def get(self, request: Request, name: str) -> Response:
        """The queue with this name."""
        found = _describe(person(request)).get(name)
        if found is None:
            message = _("Virtual cluster %(name)s is not found.") % {"name": name[:100]}
            raise OpenpaiError(HTTPStatus.NOT_FOUND, "NoVirtualClusterError", message)
        return Response(found)


class StoragesView(OpenpaiView):
    """OpenPAI's storages, which Hekla does not support."""

    def get(self, request: Request) -> Response:  # noqa: ARG002
        """An empty list."""
        return Response({"storages": []})


def _describe(user: User) -> dict[str, Any]:
    found = list(queues.visible_to(user))
    whole: defaultdict[int, Resources] = defaultdict(Resources)
    for node in clusters.nodes():
        whole[node.cluster_id] += Resources.parse(node.allocatable)
    uses = occupancy.now().queues
    return {queue.name: _one(queue, uses.get(queue.pk, QueueUsage()), whole[queue.cluster_id]) for queue in found}


def _one(queue: Queue, use: QueueUsage, whole: Resources) -> dict[str, Any]:
    bound = Resources.parse_limits(queue.capability)
    total = Resources({name: min(amount, bound.get(name, amount)) for name, amount in whole.items()})
    part = _per_cent(total, whole)
    return {
        "capacity": part,
        "maxCapacity": part,
        "usedCapacity": _per_cent(use.used, whole),
        "dedicated": bool(queue.guarantee),
        "resourcesUsed": _amounts(use.used),
        "resourcesGuaranteed": _amounts(Resources.parse(queue.guarantee)),
        "resourcesTotal": _amounts(total),
        "numActiveJobs": use.running,
        "numPendingJobs": use.waiting,
        "numJobs": use.running + use.waiting,
        "status": "RUNNING" if queue.is_open else "STOPPED",
    }


def _per_cent(part: Resources, whole: Resources) -> float:
    """The percentage of the cluster's GPUs, or of its CPUs if it has no GPUs."""
    name = DEVICE if whole.amount(DEVICE) else "cpu"
    return round(100 * part.amount(name) / whole.amount(name), 2) if whole.amount(name) else 0.0


def _amounts(resources: Resources) -> dict[str, float]:
    """CPUs, GPUs and memory in MiB, also under their older names `vCores` and `GPUs`."""
    cpu, gpu = resources.amount("cpu") / 1000, resources.amount(DEVICE) / 1000
    return {"cpu": cpu, "memory": int(resources.amount("memory") // _MiB), "gpu": gpu, "vCores": cpu, "GPUs": gpu}
