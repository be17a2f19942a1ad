"""The signs of a stalled pod in words, with their figures."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.job_history.labels import duration
from hekla.domain.stalls import Stall, StallSign

SIGNS: dict[StallSign, str | Promise] = {
    StallSign.NO_METRICS: gettext_lazy("No new metrics"),
    StallSign.SLOW_REPLICA: gettext_lazy("Slower than the others"),
    StallSign.SILENT_LOG: gettext_lazy("Silent log"),
    StallSign.UNUSED_GPUS: gettext_lazy("Unused GPUs"),
}


def sentence(stall: Stall) -> str:
    """The evidence: the figures of the sign."""
    figures = stall.figures
    if stall.sign is StallSign.UNUSED_GPUS:
        return _("It keeps less than 5 per cent of its GPUs busy.")
    if stall.sign is StallSign.SILENT_LOG:
        return _("Its log does not grow. Its longest pause before was %s.") % _time(figures)
    words = {"metric": figures["metric"], "step": f"{figures['step']:g}"}
    if stall.sign is StallSign.NO_METRICS:
        words["usual"] = _time(figures)
        return _("Last metric: %(metric)s at step %(step)s. The longest pause before was %(usual)s.") % words
    words |= {name: f"{figures[name]:.3g}" for name in ("pace", "other_pace")}
    words["other_step"] = f"{figures['other_step']:g}"
    return (
        _(
            "Step %(step)s of %(metric)s, with %(pace)s steps per second. The others, in the middle: step "
            "%(other_step)s, with %(other_pace)s steps per second."
        )
        % words
    )


def _time(figures: Mapping[str, float | str]) -> str:
    return duration(float(figures["usual"]))
