"""Pages of rows that are shown as something else than a table, for example as cards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, QueryDict


@dataclass(frozen=True)
class PagedRows:
    """The rows of one page. `previous`, `next`: the URLs of the neighbours, empty at an end. `query`: of this page."""

    page: Page[Any]
    address: str
    query: QueryDict

    @property
    def rows(self) -> Sequence[Any]:
        """The rows."""
        return list(self.page)

    @property
    def previous(self) -> str:
        """The URL of the previous page."""
        return self._address(-1) if self.page.has_previous() else ""

    @property
    def next(self) -> str:
        """The URL of the next page."""
        return self._address(1) if self.page.has_next() else ""

    def _address(self, step: int) -> str:
        changed = self.query.copy()
        changed["page"] = str(self.page.number + step)
        return f"{self.address}?{changed.urlencode()}"


def paged(request: HttpRequest, rows: Any, *, size: int, address: str = "") -> PagedRows:  # noqa: ANN401  (a query or list)
    """The page of the rows that the request names. `address`: the URL of the page, if a form of it posts elsewhere."""
    return PagedRows(Paginator(rows, size).get_page(request.GET.get("page")), address, request.GET)
