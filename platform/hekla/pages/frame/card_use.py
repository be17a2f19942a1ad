"""The columns of GPU usage in lists of people and tenants, read for the rows of one page."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString

from hekla.apps.job_history import labels
from hekla.apps.jobs.spending import CardSpending
from hekla.lib import clock
from hekla.pages.frame.tables import noted

_NONE = CardSpending()


class UsageColumns:
    """Of a table with the columns `gpus` and `hours`. `facts.use`: the use of each row, by its primary key."""

    facts: Mapping[str, Any]

    def render_gpus(self, record: Any) -> str:  # noqa: ANN401  (a person or a tenant)
        """The cards that the pods of the row hold now."""
        return f"{self._use(record).all_held:g}"

    def render_hours(self, record: Any) -> SafeString:  # noqa: ANN401  (a person or a tenant)
        """The hours on cards this month; below, by resource, if there are several."""
        use = self._use(record)
        return noted(f"{use.all_hours:.1f}", labels.hours_by_card(use.hours))

    def _use(self, record: Any) -> CardSpending:  # noqa: ANN401  (a person or a tenant)
        found: CardSpending = self.facts["use"].get(record.pk, _NONE)
        return found


def with_use(
    read: Callable[[Collection[int], datetime], Mapping[int, CardSpending]],
    first: Callable[[list[Any]], list[Any]] = list,
    **facts: object,
) -> dict[str, Any]:
    """The options of a listing that read the use of the rows of its page: `rows` and `facts`.

    `first`: what else is done with the rows; `facts`: further ones of the table.
    """
    use: dict[int, CardSpending] = {}

    def rows(records: list[Any]) -> list[Any]:
        use.update(read([record.pk for record in records], clock.now()))
        return first(records)

    return {"rows": rows, "facts": {"use": use, **facts}}
