"""Why nodes refuse a pod, in the reader's language. The engine counts nodes by its own short phrases."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

SENTENCES = {
    "anti-affinity of its pods": gettext_lazy("its pods want to be apart from these"),
    "claimed devices out of reach": gettext_lazy("out of reach of the claimed devices"),
    "cpu and memory are kept for devices": gettext_lazy("CPU and memory are kept for who asks for devices"),
    "device claim not found": gettext_lazy("there is no such device claim"),
    "for revocable tasks only": gettext_lazy("only for what may be taken back"),
    "full of online work": gettext_lazy("full of online work"),
    "label does not match": gettext_lazy("labels do not match"),
    "no GPU with room": gettext_lazy("no GPU has room"),
    "no label to spread by": gettext_lazy("no label to spread by"),
    "no such GPU": gettext_lazy("no such GPU"),
    "no volume to bind": gettext_lazy("no volume is free"),
    "node does not satisfy the node group affinity": gettext_lazy("not in its group of nodes"),
    "node group affinity not specified": gettext_lazy("its queue names no group of nodes"),
    "node group label not found": gettext_lazy("in no group of nodes"),
    "node group resource limit annotation invalid": gettext_lazy("the bound of its group of nodes cannot be read"),
    "node group resource limit exceeded": gettext_lazy("its group of nodes is at its bound"),
    "not schedulable": gettext_lazy("takes no new pods"),
    "numa topology cannot be kept": gettext_lazy("its NUMA cells have no room"),
    "numa topology policy does not match": gettext_lazy("another NUMA policy"),
    "pod affinity": gettext_lazy("too far from the pods that it wants to be near to"),
    "pod anti-affinity": gettext_lazy("too near to pods that it wants to be apart from"),
    "port in use": gettext_lazy("its port is in use"),
    "reserved for a job that waits longer": gettext_lazy("kept for a job that waits longer"),
    "revocable zone is closed": gettext_lazy("closed at this time"),
    "too many pods": gettext_lazy("as many pods as it takes"),
    "uneven spread": gettext_lazy("its pods would be spread unevenly"),
    "volume claim not bound": gettext_lazy("its volume claim is not bound"),
    "volume claim not found": gettext_lazy("there is no such volume claim"),
    "volume in another zone": gettext_lazy("its volume is in another zone"),
    "volume not found": gettext_lazy("there is no such volume"),
    "volume out of reach": gettext_lazy("its volume is out of reach"),
}
_SHORT, _TAINT, _BUSY = "insufficient ", "taint ", " usage is too high"


def told(reason: str) -> str:
    """One of them; what is not known here, such as the words of an extender, stays as it is."""
    if sentence := SENTENCES.get(reason):
        return str(sentence)
    if reason.startswith(_SHORT):
        return _("not enough %s") % resource(reason.removeprefix(_SHORT))
    if reason.startswith(_TAINT):
        return _("taint %s, which it does not tolerate") % reason.removeprefix(_TAINT)
    if reason.endswith(_BUSY):
        return _("too busy: %s") % resource(reason.removesuffix(_BUSY))
    return reason


def resource(name: str) -> str:
    """What people call a resource."""
    if name == "memory":
        return _("memory")
    return "GPU" if name.endswith("/gpu") else {"cpu": "CPU"}.get(name, name)
