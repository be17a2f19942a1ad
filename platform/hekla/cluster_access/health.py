"""How a cluster is, as it answered: as rows keep it, and in words that whoever runs it can act on."""

from django.utils.translation import gettext as _

from hekla.apps.clusters.services import HealthFacts
from hekla.backends.base import Health, HealthProblem


def as_facts(found: Health) -> HealthFacts:
    """As the rows have it."""
    return {
        "problem": found.problem or "",
        "detail": found.detail,
        "version": found.version,
        "has_namespace": found.has_namespace,
        "missing": list(found.missing),
        "kubelets": dict(found.kubelets),
    }


def is_healthy(found: Health) -> bool:
    """Whether nothing is missing there."""
    return not found.problem and not found.missing and found.has_namespace is not False


def describe_trouble(problem: str) -> str:
    """Why a cluster is out of reach, and what can be done; empty: it is not."""
    sentences: dict[str, str] = {
        "": "",
        HealthProblem.UNUSABLE: _("It cannot be reached as it is set up."),
        HealthProblem.SILENT: _("Its server does not answer. Is the address right, and does the network lead there?"),
        HealthProblem.UNTRUSTED: _(
            "What answers cannot prove to be its server. Is this the certificate of its authority?"
        ),
        HealthProblem.NOT_LET_IN: _("Its server does not take the key, which may have run out. Replace it."),
        HealthProblem.REFUSED: _("Its server answers that something is wrong."),
    }
    return sentences.get(problem, _("It cannot be reached."))
