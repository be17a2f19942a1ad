"""Checks of the GPUs of this machine: what NVIDIA's driver reports to the cluster `local`."""

from collections import Counter

from hekla.backends.local import gpus
from hekla.domain.translation import gettext_noop as _
from hekla.launcher.doctor.findings import Finding, Severity, literal


def check_gpus() -> Finding:
    """The GPUs and the driver. No GPU is no problem: a machine can have cards of other vendors, or none."""
    cards = gpus.detected(shares_memory=False)
    if not cards:
        return Finding("gpus", Severity.OK, (_("NVIDIA's driver reports no GPU."),))
    failed = sum(not card.is_healthy for card in cards)
    counts = Counter(card.model for card in cards if card.is_healthy)
    models = ", ".join(f"{count} × {literal(model)}" for model, count in counts.items()) or "–"
    sentences = [_("NVIDIA's driver {version} reports these GPUs: {models}.")]
    version = gpus.driver_version()
    if not version:
        sentences = [
            _("NVIDIA's driver has these GPUs: {models}."),
            _("Its library libnvidia-ml.so.1 does not answer, so their memory, use and failures are unknown."),
        ]
    if failed:
        sentences.append(_("Failed GPUs, which pods do not get: {failed}."))
    severity = Severity.WARNING if failed or not version else Severity.OK
    return Finding("gpus", severity, tuple(sentences), {"version": version, "models": models, "failed": failed})
