"""Small pieces of HTML that lists contain by the hundred, built in Python: templates take ten times as long.

The components of the same names call these too, so each has one markup. All user input is escaped by `text`.
"""

import re
from collections.abc import Callable
from datetime import datetime, tzinfo
from functools import cache, lru_cache
from typing import Any

from django.conf import settings
from django.http import QueryDict
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timesince import timesince
from django.utils.timezone import get_current_timezone, localtime
from django.utils.translation import get_language, get_language_info
from markupsafe import escape

from hekla.apps.job_history import labels

NOTHING = SafeString('<span class="muted nothing">–</span>')
_special = re.compile("[&<>'\"]").search


def text(value: Any) -> str:  # noqa: ANN401  (any value)
    """The value as HTML: escaped, unless it is HTML. As `escape` of MarkupSafe, in a fifth of its steps for most."""
    kind = type(value)
    if kind is str or kind is SafeString:
        words: str = value
        return escape(words) if kind is str and _special(words) is not None else words
    return str(value) if kind is int else escape(value)


@cache
def icon(name: str) -> SafeString:
    """An icon of the sprite, hidden from screen readers because a word stands beside it."""
    address = static("img/icons.svg")
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', address, name)


@cache
def logo() -> SafeString:
    """The logo: a volcano with its eruption."""
    address = static("img/icons.svg")
    return format_html('<svg class="logo" aria-hidden="true"><use href="{}#logo" /></svg>', address)


@cache
def languages() -> list[tuple[str, str]]:
    """The languages of the console: the code, and the name in the language itself."""
    return [(code, capfirst(get_language_info(code)["name_local"])) for code, _name in settings.LANGUAGES]


@lru_cache(maxsize=8192)
def address(view: str, *keys: object) -> str:
    """The URL of a view, cached because many rows link to the same page."""
    return reverse(view, args=keys)


@lru_cache(maxsize=4096)
def link(view: str, key: str, words: str) -> SafeString:
    """A link to a page, cached because many rows link to the same page."""
    return format_html('<a href="{}">{}</a>', address(view, key), words)


def column_head(
    label: str, field: str = "", sort: str = "", number: object = "", query: object = None, page: str = ""
) -> SafeString:
    """The head of a column. `field`: the sort field of the column; `sort`: the current order of the list of this
    `query`.

    `page`: the URL of the list, if it differs from the URL of the page.
    """
    kind = ' class="number"' if number else ""
    if not field:
        return SafeString(f'<th scope="col"{kind}>{text(label)}</th>')
    order, picture, other = _orders(field).get(sort, ("", "", field))
    words: str = text(label)
    if isinstance(query, QueryDict):
        words = f'<a href="{text(page + _sorted_by(query, other))}">{words}{picture}</a>'
    return SafeString(f'<th scope="col"{kind}{order}>{words}</th>')


@cache
def _orders(field: str) -> dict[str, tuple[str, str, str]]:
    """For each order by a field: the ARIA attribute, the icon, and the sort field of the next click."""
    return {
        field: (' aria-sort="ascending"', icon("up"), f"-{field}"),
        f"-{field}": (' aria-sort="descending"', icon("down"), field),
    }


def _sorted_by(query: QueryDict, sort: str) -> str:
    """The URL query of the list's first page in another order."""
    if not query:  # the usual case: avoid a copy for each column
        return f"?sort={sort}"
    query = query.copy()
    query["sort"] = sort
    for place in ("cursor", "page"):
        query.pop(place, None)
    return f"?{query.urlencode()}"


def phase(value: str, title: str = "") -> SafeString:
    """A badge of a phase: colour, shape and word. `title`: the tooltip."""
    return phase_in(get_language() or "", value, title)


@lru_cache(maxsize=1024)
def phase_in(_language: str, value: str, title: str = "") -> SafeString:
    """The same in this language, which is the one in force, for lists."""
    more = f' title="{text(title)}"' if title else ""
    shape, word = icon(f"phase-{value}"), text(labels.phase(value))
    return SafeString(f'<span class="badge phase-{text(value)}"{more}>{shape}{word}</span>')


def badge(state: str, word: str, title: str = "") -> SafeString:
    """A badge with a state's colour. `title`: the tooltip."""
    more = f' title="{text(title)}"' if title else ""
    return SafeString(f'<span class="badge state-{text(state)}"{more}>{text(word)}</span>')


def moment(at: datetime | None, exact: object = "") -> SafeString:
    """An instant. The page shows it as relative time (“3 min ago”) unless `exact` is true."""
    return _moment(at, get_current_timezone(), bool(exact)) if at else NOTHING


def moments(*, exact: bool) -> Callable[[datetime], SafeString]:
    """A function that does the same for many instants, which looks up the time zone only once."""
    zone = get_current_timezone()
    return lambda at: _moment(at, zone, exact)


@lru_cache(maxsize=8192)
def _moment(at: datetime, _zone: tzinfo, exact: bool) -> SafeString:
    here, kind = localtime(at), "data-exact" if exact else "data-relative"
    return SafeString(f'<time datetime="{here.isoformat()}" {kind}>{here:%Y-%m-%d %H:%M:%S}</time>')


def duration(began: datetime | None, ended: datetime | None) -> SafeString:
    """The time between two instants. If it has not ended, the page counts on."""
    if not began:
        return NOTHING
    if not ended:
        return _duration(began, None)
    return _took(began, ended, get_current_timezone(), get_language())


def durations() -> Callable[[datetime | None, datetime | None], SafeString]:
    """A function that does the same for many rows, which looks up the time zone and the language only once."""
    zone, language = get_current_timezone(), get_language()

    def between(began: datetime | None, ended: datetime | None) -> SafeString:
        return _took(began, ended, zone, language) if began and ended else duration(began, ended)

    return between


@lru_cache(maxsize=4096)
def _took(began: datetime, ended: datetime, _zone: tzinfo, _language: str) -> SafeString:
    return _duration(began, ended)


def _duration(began: datetime, ended: datetime | None) -> SafeString:
    to = f' data-to="{localtime(ended).isoformat()}"' if ended else ""
    words = text(timesince(began, ended))
    return SafeString(f'<time class="number" data-from="{localtime(began).isoformat()}"{to}>{words}</time>')


def event(
    slot: str, at: datetime | None, *, state: str, icon_name: str = "", actor: str = "", key: str = ""
) -> SafeString:
    """An event of a timeline. See `components/event.html`; `slot`: markup; `key`: its id."""
    name, mark = f' id="{text(key)}"' if key else "", icon(icon_name) if icon_name else ""
    whose = f" · {text(actor)}" if actor else ""
    return SafeString(
        f'<li class="event state-{text(state)}"{name}><span class="event-mark" aria-hidden="true">{mark}</span><div>'
        f'<p>{text(slot)}</p><p class="event-meta">{moment(at)}{whose}</p></div></li>'
    )


def progress(value: object, most: object, *, label: str, state: str, words: str) -> SafeString:
    """A progress bar. `label`: its meaning, for screen readers; `words`: the text beside it."""
    bar = f'<progress value="{text(value)}" max="{text(most)}" aria-label="{text(label)}"></progress>'
    beside = f'<span class="number">{text(words)}</span>' if words else ""
    return SafeString(f'<span class="progress state-{text(state)}">{bar}{beside}</span>')


def queue_bar(
    capability: float,
    used: float,
    borrowed: float = 0,
    lent: float = 0,
    guarantee: float = 0,
    deserved: float = 0,
    words: str = "",
) -> SafeString:
    """A queue's shares as one bar from 0 to its capability, all in one unit. `words`: the same figures as a sentence.

    Solid: used of its own. Hatched: borrowed. Outlined: lent to others. Ticks: guarantee (low), deserved (full height).
    """
    amounts = (used, borrowed, lent, guarantee, deserved)
    scale = 1000 / float(capability) if float(capability) else 0
    used, borrowed, lent, guarantee, deserved = (round(float(one) * scale) for one in amounts)
    title = text(words)
    parts = f"{_borrowed(used, borrowed)}{_lent(used, lent)}{_tick(guarantee, 8)}{_tick(deserved, 0)}"
    return SafeString(
        f'<div class="queue-bar" title="{title}"><svg role="img" aria-label="{title}" viewBox="0 0 1000 14"'
        ' preserveAspectRatio="none"><rect class="queue-bar-room" x="0" y="2" width="1000" height="10"/>'
        f'<rect class="queue-bar-used" x="0" y="2" width="{used}" height="10"/>{parts}</svg></div>'
    )


def _borrowed(used: float, width: float) -> str:
    if not width:
        return ""
    return (
        f'<g transform="translate({used} 0) scale(-1 1)">'
        f'<rect class="queue-bar-room" x="0" y="2" width="{width}" height="10"/>'
        f'<line class="queue-bar-borrowed" x1="0" x2="{width}" y1="7" y2="7"/></g>'
    )


def _lent(used: float, width: float) -> str:
    if not width:
        return ""
    return (
        f'<g transform="translate({used} 0)"><rect class="queue-bar-lent" x="2" y="3" width="{width}" height="8"/></g>'
    )


def _tick(at: float, top: int) -> str:
    return f'<line class="queue-bar-tick" x1="{at}" x2="{at}" y1="{top}" y2="14"/>' if at else ""
