"""The health of a cluster: converted for its row, and as messages that tell an operator what to do."""

from django.utils.translation import gettext as _

from hekla.apps.clusters.services import HealthFacts
from hekla.backends.base import Health, HealthProblem


def as_facts(found: Health) -> HealthFacts:
    """The health as fields of a row."""
    return {
        "problem": found.problem or "",
        "detail": found.detail,
        "version": found.version,
        "has_namespace": found.has_namespace,
        "missing": list(found.missing),
        "kubelets": dict(found.kubelets),
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
