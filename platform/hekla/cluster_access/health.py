"""The health of a cluster: converted for its row, and as messages that tell an operator what to do."""

from django.utils.translation import gettext as _

from hekla.apps.clusters.services import HealthFacts
from hekla.backends.base import Health, HealthProblem
from hekla.backends.kubernetes.hypernode_members import HyperNodeProblem


def as_facts(found: Health) -> HealthFacts:
    """The health as fields of a row."""
    return {
        "problem": found.problem or "",
        "detail": found.detail,
        "version": found.version,
        "has_namespace": found.has_namespace,
        "missing": list(found.missing),
        "kubelets": dict(found.kubelets),
        "topology_faults": list(found.topology_faults),
        "metrics_fault": found.metrics_fault,
    }


def is_healthy(found: Health) -> bool:
    """Whether the cluster can be reached, has its namespace, and grants all permissions."""
    return not found.problem and not found.missing and found.has_namespace is not False


def describe_trouble(problem: str) -> str:
    """Why a cluster cannot be reached, and what to do; empty without a problem."""
    sentences: dict[str, str] = {
        "": "",
        HealthProblem.UNUSABLE: _("The cluster cannot be reached with this configuration."),
        HealthProblem.SILENT: _("The server does not answer. Check the address and the network."),
        HealthProblem.UNTRUSTED: _("The server's certificate is not trusted. Check the CA certificate."),
        HealthProblem.NOT_LET_IN: _("The server rejects the credentials. They may have expired. Replace them."),
        HealthProblem.REFUSED: _("The server answers with an error."),
    }
    return sentences.get(problem, _("Not reachable."))


def describe_topology_fault(problem: str) -> str:
    """What is wrong with an object that defines a hypernode."""
    sentences: dict[str, str] = {
        HyperNodeProblem.TOO_MANY: _("There are too many hypernodes, in all or around one of its nodes."),
        HyperNodeProblem.INVALID: _("It is not valid, or uses a selector that is not valid."),
        HyperNodeProblem.MEMBER: _("A member does not exist, or its tier is not lower."),
        HyperNodeProblem.EXPRESSION: _("A regular expression is not supported, or is too complex."),
        HyperNodeProblem.OVERLAP: _("One of its nodes is in another hypernode of the same tier too."),
    }
    return sentences.get(problem, problem)
