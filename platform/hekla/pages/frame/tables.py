"""Lists as tables: a column declares its head and its cell; sorting, filters, pages and saved state follow from that.

A feature declares its tables in `tables.py`. A view calls `listing` and passes the result to `<c-listing>`, which
renders it all. Unknown query parameters never cause an error; they are ignored.

The session stores the last order and filters of each list. They apply if the list is opened without its own query
parameters; `all=yes` opens the list without them, and clears them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import django_tables2
from django import forms
from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, QueryDict
from django.template import Context
from django.template.loader import get_template
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django_filters import CharFilter
from django_tables2.columns import BoundColumn

from hekla.apps.filter_sets import QuickFilterSet
from hekla.pages.frame import current_tenant, html
from hekla.pages.frame.html import text
from hekla.pages.frame.people import person

Words = str | Promise
Cell = tuple[SafeString, Callable[[Any], object], SafeString]
"""The cells of a column: their opening tag, the function of a record with their content, and their closing tag."""
MOST_IN_ADDRESS = 1000
_SESSION = "lists"
_SORT, _PAGE, _EVERYTHING, _TENANT = "sort", "page", "all", "tenant"


class ListColumn(django_tables2.Column):  # type: ignore[misc]
    """A column: its head and its cell. Without `sort` it is not sortable.

    `sort`: the sort fields, of database rows or of objects. `cell`: a function of the record that returns the content;
    else `template`, rendered with the `record` and the `facts` of the table; else the value of the column's name.
    `number`: right-aligned; `wide`: wide enough for a bar. `foot`: the content below all rows, from the facts of the
    table, for example a sum.
    """

    def __init__(
        self,
        label: Words,
        *,
        sort: str | Sequence[str] = "",
        cell: Callable[[Any], object] | None = None,
        template: str = "",
        number: bool = False,
        wide: bool = False,
        foot: Callable[[Mapping[str, Any]], object] | None = None,
    ) -> None:
        super().__init__(label, orderable=bool(sort), order_by=sort or None)
        self.label, self.cell, self.template, self.foot, self.is_hidden = label, cell, template, foot, False
        self.kind = "number" if number else "wide-cell" if wide else ""

    def __deepcopy__(self, _memo: dict[int, Any]) -> "ListColumn":
        """A shallow copy. Each table needs its own columns, but their declarations never change and can be shared."""
        return copy(self)

    def content_of(self, table: "ListTable", bound: BoundColumn) -> Callable[[Any], object]:
        """A function of a record that returns the content of its cell. A list calls it hundreds of times."""
        if self.template:
            return lambda record: _print(self.template, table.context, {**table.facts, "record": record})
        cell = self.cell or (lambda record: bound.accessor.resolve(record, quiet=True))

        def content(record: Any) -> object:  # noqa: ANN401  (any row)
            value = cell(record)
            return html.NOTHING if value is None or value == "" else value

        return content


class ActionsColumn(ListColumn):
    """The actions of a row. Only screen readers see its head."""

    def __init__(self, template: str = "", *, cell: Callable[[Any], object] | None = None) -> None:
        super().__init__(_("Actions"), template=template, cell=cell)
        self.is_hidden = True


def _print(name: str, context: Context, facts: Mapping[str, Any]) -> SafeString:
    """A rendered template, as a part of the page."""
    with context.push(**facts):
        return SafeString(get_template(name).template.render(context))  # type: ignore[attr-defined]


def named(view: str, key: object, words: object, note: object = "") -> SafeString:
    """The cell that names a row: a link to its page, with a note below."""
    return SafeString(_noted(f'<a href="{html.address(view, key)}">{text(words)}</a>', note))


def noted(words: object, note: object) -> SafeString:
    """Another cell with a note below. On phones both are one element beside the head."""
    return SafeString(f"<span>{_noted(text(words), note)}</span>")


def _noted(words: str, note: object) -> str:
    """`words`: escaped."""
    return f'{words}<span class="row-note">{text(note)}</span>' if note else words


class ListTable(django_tables2.Table):  # type: ignore[misc]
    """A table of rows. The name of a column is also its sort parameter in the URL.

    A method `render_<column>` renders a cell that needs the `facts` of the table.

    `label`: what the table lists; `heading`: the column that names a row, by default the first; `keys`: whether j, k
    and Enter move between rows; `ids`: the format of a row's element id, if the list is live. `facts`: values that
    cells need besides the record. `is_always_searchable`: whether a list of a single page has its search, too;
    `is_dense`: whether no cell takes a second line. `suggests`: the searchable kind of its rows, whose names the search
    suggests.
    """

    label: ClassVar[Words] = ""
    heading: ClassVar[str] = ""
    keys: ClassVar[bool] = True
    ids: ClassVar[str] = ""
    size: ClassVar[int] = 50
    is_always_searchable: ClassVar[bool] = False
    is_dense: ClassVar[bool] = False
    suggests: ClassVar[str] = ""

    def __init__(self, data: Any, *, exclude: Sequence[str] = (), facts: Mapping[str, Any] | None = None) -> None:  # noqa: ANN401
        super().__init__(data, exclude=exclude)
        self.facts, self.context = facts or {}, Context()
        self.title = self.heading or next(iter(self.columns.names()), "")

    def sort_by(self, sort: str) -> str:
        """Sort by this query parameter. Returns it, or an empty string if no sortable column has that name."""
        name = sort.removeprefix("-")
        if name not in self.columns.names() or not self.columns[name].orderable:
            return ""
        self.order_by = [sort]
        rows = self.data.data
        if isinstance(rows, QuerySet):  # a stable order, so that equal rows stay on their page
            self.data.data = rows.order_by(*rows.query.order_by, "pk")
        return sort

    def head(self, column: BoundColumn, query: QueryDict, sort: str, address: str) -> SafeString:
        """The head of a column, with a link that sorts by it."""
        words = str(column.header)
        if column.column.is_hidden:
            return format_html('<th scope="col"><span class="hidden-text">{}</span></th>', words)
        number = column.column.kind == "number"
        return html.column_head(words, column.name if column.orderable else "", sort, number, query, address)

    def body(self, records: Iterable[Any], context: Context) -> SafeString:
        """The rows of the table, as a part of the page with this context."""
        self.context = context
        return SafeString("".join([self.row(record) for record in records]))

    def row(self, record: Any) -> str:  # noqa: ANN401  (any row)
        """A row of the table. The cell that names it is its head."""
        mark = f' id="{text(self.ids.format(record))}"' if self.ids else ""
        parts = [part for begin, content, end in self._cells for part in (begin, text(content(record)), end)]
        return f"<tr{mark}>{''.join(parts)}</tr>"

    def foot(self) -> SafeString:
        """The row below all others; empty if no column has a foot."""
        feet = [bound.column.foot for bound in self.columns]
        if not any(feet):
            return SafeString()
        cells = zip(feet, self._cells, strict=True)
        parts = ((begin, foot(self.facts) if foot else "", end) for foot, (begin, _content, end) in cells)
        return format_html("<tr>{}</tr>", format_html_join("", "{}{}{}", parts))

    @cached_property
    def language(self) -> str:
        """The language in force, for cells that cache what they say: it takes longer to look up than most cells."""
        return get_language() or ""

    @cached_property
    def moment_of(self) -> Callable[[datetime], SafeString]:
        """An instant as `html.moment` shows it, for cells: the time zone is looked up once."""
        return html.moments(exact=False)

    @cached_property
    def duration_of(self) -> Callable[[datetime | None, datetime | None], SafeString]:
        """The time between two instants as `html.duration` shows it, for cells."""
        return html.durations()

    @cached_property
    def _cells(self) -> list[Cell]:
        """The cells of each column."""
        return [self._cell(bound) for bound in self.columns]

    def _cell(self, bound: BoundColumn) -> Cell:
        column = bound.column
        content = getattr(self, f"render_{bound.name}", None) or column.content_of(self, bound)
        if bound.name == self.title:
            return _ROW_HEAD, content, _ROW_HEAD_END
        return _opening_tag(column.kind, "" if column.is_hidden else str(bound.header)), content, _CELL_END


_ROW_HEAD, _ROW_HEAD_END, _CELL_END = SafeString('<th scope="row">'), SafeString("</th>"), SafeString("</td>")


@lru_cache(maxsize=1024)
def _opening_tag(kind: str, label: str) -> SafeString:
    """The opening tag of a cell. On phones its label, the head of the column, stands beside it."""
    marks = format_html(' class="{}"', kind) if kind else SafeString()
    return format_html("<td{}{}>", marks, format_html(' data-label="{}"', label) if label else "")


class ListFilter(QuickFilterSet):
    """The filters of a list. `search`: the fields that the text search covers; `hint`: their description."""

    search: ClassVar[tuple[str, ...]] = ()
    hint: ClassVar[Words] = ""

    q = CharFilter(method="holds", max_length=100)

    def holds(self, rows: QuerySet[Any], _name: str, text: str) -> QuerySet[Any]:
        """The rows with a field that contains the text."""
        found = Q()
        for field in self.search:
            found |= Q(**{f"{field}__icontains": text})
        return rows.filter(found)


class OwnedFilter(ListFilter):
    """Filters things that people own in tenants, by name, owner and tenant.

    The parameter `tenant` of the list limits it to one tenant: the one that the person chose for all lists, if any.
    """

    search = ("name", "owner__username", "owner__display_name", "tenant__name")
    hint = _("Name, owner or tenant")


class _TextForm(forms.Form):
    q = forms.CharField(required=False, max_length=100)


@dataclass(frozen=True)
class TextSearch:
    """The search of a list that is not a queryset: it searches the text of each row.

    `is_folded`: whether the texts are without case already (`casefold`).
    """

    text: Callable[[Any], str]
    hint: Words = ""
    is_folded: bool = False

    def found(self, rows: Iterable[Any], words: str) -> list[Any]:
        """The rows whose text contains these words, ignoring case; all rows without words."""
        if not words:
            return list(rows)
        wanted, text = words.casefold(), self.text
        if self.is_folded:
            return [row for row in rows if wanted in text(row)]
        return [row for row in rows if wanted in text(row).casefold()]


Filters = type[ListFilter] | TextSearch


@dataclass
class Listing:
    """A page of a list. `state`: its order and filters; `query`: these, and the other query parameters of the page.

    `address`: the URL of the list, if it is also shown at other URLs.
    """

    table: ListTable
    page: Page[Any]
    records: Sequence[Any]
    make_form: Callable[[], forms.Form] | None
    hint: Words
    state: QueryDict
    query: QueryDict
    address: str

    @cached_property
    def form(self) -> forms.Form | None:
        """The search and filter form. Created on demand, because most lists are too short to show it."""
        return self.make_form() if self.make_form else None

    @property
    def is_filtered(self) -> bool:
        """Whether a filter is active."""
        return bool(self.state.keys() - {_SORT})

    @property
    def is_empty(self) -> bool:
        """Whether the list has no rows at all. A page says then what to do next, and spends no time on it otherwise."""
        return not self.records and not self.is_filtered

    @property
    def has_filters(self) -> bool:
        """Whether to show the form: a filter is active, there are several pages, or the list always has it."""
        is_long = self.table.is_always_searchable or self.page.paginator.num_pages > 1
        return self.make_form is not None and (self.is_filtered or is_long)

    @cached_property
    def heads(self) -> list[SafeString]:
        """The column heads. The default order is marked too."""
        sort = self.state.get(_SORT, "") or next(iter(self.table.order_by or ()), "")
        return [self.table.head(column, self.query, sort, self.address) for column in self.table.columns]

    @cached_property
    def foot(self) -> SafeString:
        """The last row. It covers the whole list, so a filtered list has none."""
        return SafeString() if self.is_filtered else self.table.foot()

    @property
    def selects(self) -> list[Any]:
        """The filter fields, without the text search."""
        fields = [self.form[name] for name in self.form.fields if name != "q"] if self.form else []
        for field in fields:
            field.field.widget.attrs["aria-label"] = field.label
        return fields

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """The hidden fields of the form. Without `all`, an emptied form would restore the saved state."""
        fields = self.form.fields if self.form else ()
        rest = [(name, value) for name, values in self.query.lists() if name not in fields for value in values]
        return [*rest, (_EVERYTHING, "yes")]

    @property
    def previous(self) -> str:
        """The URL of the previous page; empty on the first page."""
        return self.address + self._words(self.page.number - 1) if self.page.has_previous() else ""

    @property
    def next(self) -> str:
        """The URL of the next page; empty on the last page."""
        return self.address + self._words(self.page.number + 1) if self.page.has_next() else ""

    @property
    def cleared(self) -> str:
        """The URL of the list without order and filters."""
        query = self.query.copy()
        for word in self.state:
            query.pop(word, None)
        query[_EVERYTHING] = "yes"
        return f"{self.address}?{query.urlencode()}"

    @property
    def live_query(self) -> str:
        """The query string with which a live view renders the same page."""
        return self._words(self.page.number).removeprefix("?")

    def _words(self, number: int) -> str:
        query = self.query.copy()
        if not self.state:
            query[_EVERYTHING] = "yes"
        query[_PAGE] = str(number)
        return f"?{query.urlencode()}"


def listing(
    request: HttpRequest,
    table: type[ListTable],
    data: Any,  # noqa: ANN401  (a query, or a list of any rows)
    filters: Filters | None = None,
    **options: Any,  # noqa: ANN401
) -> Listing:
    """The page of a list for this request, or with the person's saved state. `options`: see `listing_of`."""
    key, words = f"{person(request).pk}:{table.__name__}", {_SORT, _EVERYTHING, *_fields(filters)}
    saved, query = request.session.get(_SESSION, {}), request.GET.copy()
    if _has_tenants(filters) and (scope := current_tenant.scope(request)):
        query.setdefault(_TENANT, scope.slug)
    if not words & query.keys():
        query.update(QueryDict(saved.get(key, "")))
        return listing_of(query, table, data, filters, **options)
    found = listing_of(query, table, data, filters, **options)
    state = found.state.urlencode()
    if saved.get(key, "") != state and len(state) <= MOST_IN_ADDRESS:
        request.session[_SESSION] = {name: value for name, value in {**saved, key: state}.items() if value}
    return found


def words_of(params: Mapping[str, str]) -> QueryDict:
    """The query parameters of a live page."""
    return QueryDict(params.get("query", "")[: 2 * MOST_IN_ADDRESS])


def listing_of(
    query: QueryDict,
    table: type[ListTable],
    data: Any,  # noqa: ANN401  (a query, or a list of any rows)
    filters: Filters | None = None,
    *,
    rows: Callable[[list[Any]], Sequence[Any]] | None = None,
    exclude: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
    address: str = "",
) -> Listing:
    """The page of a list for these query parameters. Live views call it directly.

    `rows`: turns the records of one page into the rows of the table; `exclude`: columns that this reader does not see;
    `address`: the URL of the list, if a form of the page posts elsewhere.
    """
    if _has_tenants(filters) and (slug := query.get(_TENANT)):
        data = data.filter(tenant__slug=slug.replace("\0", ""))
    found, make_form, state = _narrowed(data, filters, query)
    whole = table(found, exclude=exclude, facts=facts)
    if sort := whole.sort_by(query.get(_SORT, "")):
        state[_SORT] = sort
    page = _page(whole.data.data, table.size, query.get(_PAGE, ""))
    records = list(page)
    links = query.copy()
    for word in {_SORT, _PAGE, _EVERYTHING, *_fields(filters)}:
        links.pop(word, None)
    for word, values in state.lists():
        links.setlist(word, values)
    hint = filters.hint if filters else ""
    return Listing(whole, page, rows(records) if rows else records, make_form, hint, state, links, address)


def _page(rows: Any, size: int, number: str) -> Page[Any]:  # noqa: ANN401  (a query, or a list)
    """A page of the rows. If all rows fit on the first page, no count query runs."""
    pages = Paginator(rows, size)
    if isinstance(rows, QuerySet) and number in {"", "1"}:
        first = list(rows[: size + 1])
        return Page(first[:size], 1, pages) if len(first) > size else Paginator(first, size).page(1)
    return pages.get_page(number)


def _has_tenants(filters: Filters | None) -> bool:
    return isinstance(filters, type) and issubclass(filters, OwnedFilter)


def _fields(filters: Filters | None) -> Iterable[str]:
    if filters is None:
        return ()
    return ("q",) if isinstance(filters, TextSearch) else filters.base_filters


def _narrowed(
    data: Any,  # noqa: ANN401  (a query, or a list of any rows)
    filters: Filters | None,
    query: QueryDict,
) -> tuple[Any, Callable[[], forms.Form] | None, QueryDict]:
    """The filtered rows, a factory of the filter form, and the query parameters that took effect."""
    state = QueryDict(mutable=True)
    if filters is None:
        return data, None, state
    if not any(query.get(name) for name in _fields(filters)):
        return data, lambda: _filtered(data, filters, query)[1], state
    found, form = _filtered(data, filters, query)
    for name in form.fields:
        if form.cleaned_data.get(name) and (values := [value for value in query.getlist(name) if value]):
            state.setlist(name, values)
    return found, lambda: form, state


def _filtered(data: Any, filters: Filters, query: QueryDict) -> tuple[Any, forms.Form]:  # noqa: ANN401
    if isinstance(filters, TextSearch):
        form = _TextForm(query)
        form.full_clean()
        return filters.found(data, form.cleaned_data.get("q", "")), form
    chosen = filters(query, queryset=data)
    found = chosen.qs
    chosen.form.auto_id = ""  # avoid duplicate ids: the page may have a form with the same fields
    return found, chosen.form
