"""Why nodes reject a pod, in the reader's language. The engine counts nodes by its own short phrases."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.cards import NVIDIA

SENTENCES = {
    "anti-affinity of its pods": gettext_lazy("anti-affinity of its own pods"),
    "claimed devices out of reach": gettext_lazy("claimed devices not reachable"),
    "cpu and memory are kept for devices": gettext_lazy("CPU and memory reserved for device jobs"),
    "device claim is being allocated": gettext_lazy("device claim is being allocated"),
    "device claim not found": gettext_lazy("device claim not found"),
    "extender does not answer": gettext_lazy("the policy’s extender does not answer"),
    "for revocable tasks only": gettext_lazy("only for reclaimable jobs"),
    "full of online work": gettext_lazy("full of online workloads"),
    "GPUs are shared": gettext_lazy("GPUs are shared: jobs request memory of one"),
    "label does not match": gettext_lazy("labels do not match"),
    "no GPU with room": gettext_lazy("no GPU has room"),
    "no label to spread by": gettext_lazy("no label for topology spread"),
    "no room for a new volume": gettext_lazy("no room for a new volume"),
    "no such GPU": gettext_lazy("GPU type not available"),
    "no volume to bind": gettext_lazy("no free volume"),
    "node does not satisfy the node group affinity": gettext_lazy("not in its node group"),
    "node group affinity not specified": gettext_lazy("its queue has no node group"),
    "node group label not found": gettext_lazy("in no node group"),
    "node group resource limit annotation invalid": gettext_lazy("limit of its node group is invalid"),
    "node group resource limit exceeded": gettext_lazy("node group at its limit"),
    "not schedulable": gettext_lazy("unschedulable"),
    "numa topology cannot be kept": gettext_lazy("NUMA cells have no room"),
    "numa topology policy does not match": gettext_lazy("NUMA policy differs"),
    "no card of its models": gettext_lazy("no card of the models that it names"),
    "other reasons of the extender": gettext_lazy("other reasons of the policy’s extender"),
    "pod affinity": gettext_lazy("pod affinity not met"),
    "pod anti-affinity": gettext_lazy("pod anti-affinity not met"),
    "port in use": gettext_lazy("port in use"),
    "reserved for a job that waits longer": gettext_lazy("reserved for a job that waits longer"),
    "revocable zone is closed": gettext_lazy("closed at this time"),
    "too many pods": gettext_lazy("pod limit reached"),
    "too many volumes": gettext_lazy("limit of attached volumes reached"),
    "uneven spread": gettext_lazy("uneven topology spread"),
    "volume claim is being deleted": gettext_lazy("volume claim is being deleted"),
    "volume claim not bound": gettext_lazy("volume claim not bound"),
    "volume claim not found": gettext_lazy("volume claim not found"),
    "volume in another zone": gettext_lazy("volume in another zone"),
    "volume not found": gettext_lazy("volume not found"),
    "volume out of reach": gettext_lazy("volume not reachable"),
}
_SHORT, _BUSY, _MOST_PODS = "insufficient ", " usage is too high", "too many pods"
_WITH_NAME = {
    "taint ": gettext_lazy("untolerated taint %s"),
    "card quota used up: ": gettext_lazy("limit of its queue on %s reached"),
    "card quota too small: ": gettext_lazy("limit of its queue on %s too low"),
}
"""Phrases that end with a name."""


def render_reason(reason: str) -> str:
    """A phrase of the engine in words. Unknown ones, for example of an extender, stay unchanged."""
    if sentence := SENTENCES.get(reason):
        return str(sentence)
    if reason.startswith(_SHORT):
        return _("not enough %s") % resource(reason.removeprefix(_SHORT))
    for start, sentence in _WITH_NAME.items():
        if reason.startswith(start):
            return sentence % reason.removeprefix(start)
    if reason.endswith(_BUSY):
        return _("too busy: %s") % resource(reason.removesuffix(_BUSY))
    return reason


def lacks(reason: str) -> str:
    """The resource of which a node has too little; empty if it refuses for another reason."""
    return "pods" if reason == _MOST_PODS else reason.removeprefix(_SHORT) if reason.startswith(_SHORT) else ""


def resource(name: str) -> str:
    """The usual name of a resource; cards of other vendors than NVIDIA have the name of their resource."""
    if name == "memory":
        return _("memory")
    return {"cpu": "CPU", NVIDIA: "GPU"}.get(name, name)
