"""Reads from pod templates what pods ask of their node and its runtime (`domain.runtime_settings`).

What would give a pod power over its node is refused by name: without it, the pod could not do what it was written for.
"""

from typing import Any

from pydantic.alias_generators import to_camel

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

_OF_NODES = ("hostNetwork", "hostPID", "hostIPC")
_NODE = gettext_noop("Jobs have no access to the network and the processes of their node. Remove this field.")
_PRIVILEGED = gettext_noop("Pods of jobs have no privileges on their node. Remove this field.")
_CAPABILITIES = gettext_noop("The configuration of a cluster decides the capabilities of its pods. Remove this field.")
_NO_GAIN = gettext_noop("pods of jobs cannot gain privileges.")
_PROFILE = gettext_noop("pods of jobs have the seccomp profile of the runtime.")
HOST_PORT = {"host_port": "hostPort", "container_port": "containerPort", "protocol": "protocol", "host_ip": "hostIP"}
"""The fields of a port of the node, with Kubernetes' spelling."""
_OF_BOTH = ("run_as_user", "run_as_group", "run_as_non_root")
_OF_POD = (*_OF_BOTH, "fs_group", "supplemental_groups")
_OF_CONTAINER = (*_OF_BOTH, "read_only_root_filesystem")
_CLAIM = ("name", "resource_claim_name", "resource_claim_template_name")
Document = dict[str, Any]


def read(reading: ManifestReader, pod: Fields, container: Fields, target: str) -> Document:
    """The fields of the task at `target`; absent ones are None."""
    for name in _OF_NODES:
        _refuse(pod, name, _NODE)
    return {
        "host_ports": _host_ports(reading, container, join(target, "host_ports")) or None,
        "pull_secrets": _pull_secrets(reading, pod, join(target, "pull_secrets")) or None,
        "resource_claims": _resource_claims(reading, pod, container, join(target, "resource_claims")) or None,
        "runtime_class": reading.take(pod, "runtimeClassName", join(target, "runtime_class")),
        "security_context": _security_context(reading, pod, container, join(target, "security_context")) or None,
    }


def _host_ports(reading: ManifestReader, container: Fields, target: str) -> list[Document]:
    """The ports of the node. Other ports of a container have no effect on how it runs."""
    reading.findings.origins[target] = container.at("ports")
    found: list[Document] = []
    for port in container.list_of_fields("ports"):
        at = join(target, len(found))
        port.ignore("name", "containerPort", "protocol")
        if port.take("hostPort"):
            reading.findings.origins[at] = port.path
            found.append(
                without_none({name: reading.take(port, field, join(at, name)) for name, field in HOST_PORT.items()})
            )
        port.close()
    return found


def _resource_claims(reading: ManifestReader, pod: Fields, container: Fields, target: str) -> list[Document]:
    """The claims of the pod, with the requests that the container names. A container can use all claims of its pod."""
    reading.findings.origins[target] = pod.at("resourceClaims")
    requests: dict[Any, list[Any]] = {}
    for used in container.fields("resources").list_of_fields("claims"):
        requests.setdefault(used.take("name"), []).append(used.take("request"))
        used.close()
    found: list[Document] = []
    for place, claim in enumerate(pod.list_of_fields("resourceClaims")):
        at = join(target, place)
        reading.findings.origins[at] = claim.path
        names = {name: reading.take(claim, to_camel(name), join(at, name)) for name in _CLAIM}
        chosen = requests.pop(names["name"], [])
        found.append(without_none({**names, "requests": chosen if chosen and all(chosen) else None}))
        claim.close()
    for name in requests:
        message = translate("The pod has no claim {name}.", name=quote(str(name)))
        reading.findings.problem(container.fields("resources").at("claims"), message)
    return found


def _pull_secrets(reading: ManifestReader, pod: Fields, target: str) -> list[Any]:
    reading.findings.origins[target] = pod.at("imagePullSecrets")
    found = []
    for place, secret in enumerate(pod.list_of_fields("imagePullSecrets")):
        found.append(reading.take(secret, "name", join(target, place)))
        secret.close()
    return found


def _security_context(reading: ManifestReader, pod: Fields, container: Fields, target: str) -> Document:
    """The fields of both contexts. Those of the container come before those of the pod, as in Kubernetes."""
    reading.findings.origins[target] = pod.at("securityContext")
    found: Document = {}
    for owner, names in ((pod, _OF_POD), (container, _OF_CONTAINER)):
        context = owner.fields("securityContext")
        for name in names:
            if to_camel(name) in context:
                found[name] = reading.take(context, to_camel(name), join(target, name))
            context.ignore(to_camel(name))
        _bound(reading, context)
    return found


def _bound(reading: ManifestReader, context: Fields) -> None:
    """Refuse privileges in a context, and report what has no effect."""
    _refuse(context, "privileged", _PRIVILEGED)
    reading.unless(context, "allowPrivilegeEscalation", (False,), translate(_NO_GAIN))
    capabilities, profile = context.fields("capabilities"), context.fields("seccompProfile")
    _refuse(capabilities, "add", _CAPABILITIES)
    capabilities.ignore("drop")  # pods have none
    reading.unless(profile, "type", ("RuntimeDefault",), translate(_PROFILE))
    for fields in (capabilities, profile, context):
        fields.close()


def _refuse(owner: Fields, name: str, why: str) -> None:
    """Report a problem unless the field is absent, false or empty."""
    if owner.take(name) not in (None, False, []):
        owner.findings.problem(owner.at(name), translate(why))
