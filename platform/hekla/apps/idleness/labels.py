"""Signals, amounts and reasons of the idle rule in words."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.idleness import MINUTE, IdleRule, IdleVerdict, KeepCause, Signal

SIGNALS = {
    Signal.REQUESTS: gettext_lazy("Requests of a person"),
    Signal.INPUT: gettext_lazy("Input in the browser"),
    Signal.KERNEL: gettext_lazy("Busy kernels"),
    Signal.TERMINAL: gettext_lazy("Input in the terminal"),
    Signal.SSH: gettext_lazy("Input by SSH"),
    Signal.CPU: gettext_lazy("CPU of the pod"),
    Signal.GPU: gettext_lazy("GPUs of the pod"),
    Signal.NETWORK: gettext_lazy("Network"),
}


def amount(signal: Signal, value: float | None) -> str:
    """An amount with its unit: `12 %`, `30 KiB/min`, `3`."""
    if value is None:
        return _("not known")
    if signal in (Signal.CPU, Signal.GPU):
        return f"{value:.0f} %"
    return f"{value:.0f} KiB/min" if signal is Signal.NETWORK else f"{value:.0f}"


def times(rule: IdleRule) -> str:
    """The times of a rule as a sentence, and who chose them."""
    facts = {"idle": rule.idle // MINUTE, "grace": rule.grace // MINUTE}
    if rule.is_chosen:
        return _("The job chose: a warning after %(idle)d minutes, the end %(grace)d minutes later.") % facts
    return _("The idle rule: a warning after %(idle)d minutes, the end %(grace)d minutes later.") % facts


def reason(verdict: IdleVerdict) -> str:
    """What kept a session until its idle time began, as a sentence."""
    if verdict.signal is not None:
        facts = {"signal": SIGNALS[verdict.signal]}
        if verdict.cause is KeepCause.SIGNAL:
            return _("Kept by: %(signal)s.") % facts
        return _("Kept because this is not known: %(signal)s.") % facts
    if verdict.cause is KeepCause.GAP:
        return _("Kept because nothing was recorded for a while.")
    return _("No activity is recorded.")
