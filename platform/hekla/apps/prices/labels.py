"""Prices in words."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.prices import PriceDays, PricedResource, PriceWindow

DAYS: dict[str, str | Promise] = {
    PriceDays.ALL.value: gettext_lazy("every day"),
    PriceDays.WORKDAYS.value: gettext_lazy("Monday to Friday"),
    PriceDays.WEEKEND.value: gettext_lazy("Saturday and Sunday"),
}
UNITS: dict[PricedResource, str | Promise] = {
    PricedResource.CPU: gettext_lazy("CPU core hours"),
    PricedResource.MEMORY: gettext_lazy("GiB hours of memory"),
    PricedResource.GPU: gettext_lazy("GPU hours"),
}


def window(one: PriceWindow) -> str:
    """When the factor of a window applies: “every day, 20:00 to 06:00”."""
    return _("%(days)s, %(begin)s to %(end)s") % {
        "days": DAYS[one.days.value],
        "begin": f"{one.begin:02}:00",
        "end": f"{one.end:02}:00",
    }


def resource(what: PricedResource, model: str) -> str:
    """What was held, in words: “GPU hours, A100”."""
    return f"{UNITS[what]}, {model}" if model else str(UNITS[what])
