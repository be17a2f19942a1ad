"""The form of a new price list: a field for each price and factor."""

from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from hashlib import sha256
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.forms import attach
from hekla.apps.measures import selectors as measures
from hekla.apps.prices import labels, selectors
from hekla.apps.queues import selectors as queues
from hekla.domain.errors import HeklaError, Invalid, Problem, Refused
from hekla.domain.prices import MAX_CURRENCY, MAX_NAME, PriceSpec

_MOST_QUEUES, _WINDOWS, _LONGEST = 100, 4, 16
_HOURS = [(hour, f"{hour:02}:00") for hour in range(24)]
_ENDS = [*_HOURS[1:], (24, "24:00")]
_OWN = {"name": "name", "currency": "currency", "cpu": "cpu", "memory": "memory", "gpu": "gpu", "begin": "day"}
"""Fields by the first part of the path of a problem."""


def _price(label: Any, **more: Any) -> forms.CharField:  # noqa: ANN401  (a lazy text)
    widget = forms.TextInput({"inputmode": "decimal"})
    return forms.CharField(label=label, max_length=_LONGEST, widget=widget, **more)


class PriceListForm(forms.Form):
    """A new price list. `source`: the prices that it begins with."""

    name = forms.CharField(label=_("Name"), max_length=MAX_NAME)
    currency = forms.CharField(
        label=_("Currency"), max_length=MAX_CURRENCY, help_text=_("Only a label. Nothing is converted.")
    )
    day = forms.DateField(label=_("Valid from"), widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"))
    hour = forms.TypedChoiceField(label=_("At"), choices=_HOURS, coerce=int, initial=0)
    cpu = _price(_("CPU core"), initial="0", help_text=_("For each core and hour that a pod requests."))
    memory = _price(_("Memory, GiB"), initial="0", help_text=_("For each GiB and hour that a pod requests."))
    gpu = _price(_("GPU"), initial="0", help_text=_("For each hour of a GPU whose model has no price of its own."))

    def __init__(self, *args: Any, user: User, source: PriceSpec | None, now: datetime, **kwargs: Any) -> None:  # noqa: ANN401
        first = _first_values(source, now)
        super().__init__(*args, **{**kwargs, "initial": first})
        spec = source or PriceSpec(name="-", currency="-")
        self.models = self._add("model", [*spec.models, *measures.models()], spec.models, "")
        visible = queues.visible_to(user)
        names = [*spec.queues, *visible.values_list("name", flat=True)[:_MOST_QUEUES]]
        self.more_queues = max(0, visible.count() - _MOST_QUEUES)
        self.queues = self._add("queue", names, spec.queues, "1")
        self._rows = range(max(_WINDOWS, len(spec.windows)))  # the command line can set more
        for number in self._rows:
            window = spec.windows[number] if number < len(spec.windows) else None
            self._add_window(number, window.model_dump() if window else {})

    def _add(self, prefix: str, names: Sequence[str], known: Mapping[str, str], default: str) -> dict[str, str]:
        """Add a field for each name. Returns the names by field.

        Fields are named after what they are about, not by number: a queue that is added while somebody types must not
        move prices to others.
        """
        found = {f"{prefix}_{sha256(name.encode()).hexdigest()[:16]}": name for name in dict.fromkeys(names)}
        for field, name in found.items():
            self.fields[field] = _price(name, required=False, initial=known.get(name, default))
        return found

    def _add_window(self, number: int, known: Mapping[str, Any]) -> None:
        days = [("", _("not used")), *labels.DAYS.items()]
        fields = {
            "days": forms.ChoiceField(label=_("Days"), choices=days, required=False, initial=known.get("days", "")),
            "begin": forms.TypedChoiceField(
                label=_("From"), choices=_HOURS, coerce=int, required=False, initial=known.get("begin", 20)
            ),
            "end": forms.TypedChoiceField(
                label=_("Until"), choices=_ENDS, coerce=int, required=False, initial=known.get("end", 6)
            ),
            "factor": _price(_("Factor"), required=False, initial=known.get("factor", "1")),
        }
        for name, field in fields.items():
            self.fields[f"window_{number}_{name}"] = field

    @property
    def model_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.models]

    @property
    def queue_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.queues]

    @property
    def window_rows(self) -> list[list[forms.BoundField]]:
        return [[self[f"window_{number}_{name}"] for name in ("days", "begin", "end", "factor")]
                for number in self._rows]  # fmt: skip

    def begin_at(self) -> datetime:
        """The chosen begin, by the clock of the console."""
        return datetime.combine(self.cleaned_data["day"], time(self.cleaned_data["hour"]), selectors.zone())

    def spec(self) -> PriceSpec:
        """The submitted prices. Raises Invalid."""
        values = self.cleaned_data
        windows = [
            {name: values[f"window_{number}_{name}"] for name in ("days", "begin", "end", "factor")}
            for number in self._windows()
        ]
        return PriceSpec.parse(
            {
                **{name: values[name].strip() for name in ("name", "currency", "cpu", "memory", "gpu")},
                "models": {name: price for field, name in self.models.items() if (price := values[field].strip())},
                "queues": {
                    name: factor
                    for field, name in self.queues.items()
                    if (factor := values[field].strip()) not in ("", "1")
                },
                "windows": windows,
            }
        )

    def _windows(self) -> list[int]:
        """The numbers of the rows that are used."""
        return [number for number in self._rows if self.cleaned_data[f"window_{number}_days"]]

    def attach_problems(self, error: HeklaError) -> None:
        """Show an error at the field that it is about."""
        if isinstance(error, Invalid):
            error = Invalid([Problem(self._field_of(one.path), one.message) for one in error.problems])
        elif isinstance(error, Refused) and error.path:
            error = Refused(error.message, self._field_of(error.path))
        attach(self, error)

    def _field_of(self, path: str) -> str:
        first, _dot, rest = path.partition(".")
        if first in ("models", "queues"):
            known = self.models if first == "models" else self.queues
            return next((field for field, name in known.items() if rest == name), "")
        if first == "windows":
            number, _dot, name = rest.partition(".")
            return f"window_{self._windows()[int(number)]}_{name or 'days'}"
        return _OWN.get(first, "")


def _first_values(source: PriceSpec | None, now: datetime) -> dict[str, Any]:
    tomorrow = (now.astimezone(selectors.zone()) + timedelta(days=1)).date()
    if source is None:
        return {"day": tomorrow, "currency": "EUR"}
    names = ("name", "currency", "cpu", "memory", "gpu")
    return {"day": tomorrow, **{name: getattr(source, name) for name in names}}
