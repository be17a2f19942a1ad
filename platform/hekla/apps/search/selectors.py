"""What holds a text in its name, as far as the person may see it: a few of each kind, the newest first."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.batches import selectors as batches
from hekla.apps.clusters import selectors as clusters
from hekla.apps.flows import selectors as flows
from hekla.apps.jobs import selectors as jobs
from hekla.apps.queues import selectors as queues
from hekla.apps.schedules import selectors as schedules
from hekla.apps.search import documents
from hekla.apps.tenancy import selectors as tenancy

LEAST, MOST = 2, 100
"""Letters of a text that is looked for."""
OF_EACH = 5
_MARKS = re.compile(r"[*`]")


@dataclass(frozen=True, slots=True)
class Hit:
    """A thing that was found. `note`: what tells it from others of its name; `path`: its page."""

    kind: str
    name: str
    note: str
    path: str


def find(user: User, text: str, language: str) -> list[Hit]:
    """At most a few things of each kind; nothing for a text that is too short. Costs a query a kind."""
    text = text.strip()[:MOST].replace("\0", "")
    if len(text) < LEAST:
        return []
    return [*_work(user, text), *_places(user, text), *_people(user, text), *_help(text, language)]


def _work(user: User, text: str) -> Iterator[Hit]:
    found_jobs = jobs.visible_to(user).filter(_named(text)).select_related("tenant").order_by("-id")[:OF_EACH]
    for job in found_jobs:
        yield Hit("job", job.name, f"{job.tenant} · {job.phase}", reverse("jobs:detail", args=[job.uid]))
    yield from _of("flow", flows.visible_to(user), text, "flows:detail")
    yield from _of("template", flows.templates(user), text, "flows:template")
    yield from _of("batch", batches.visible_to(user), text, "batches:detail")
    yield from _of("schedule", schedules.visible_to(user), text, "schedules:detail")


def _of(kind: str, things: QuerySet[Any], text: str, view: str) -> Iterator[Hit]:
    for thing in things.filter(_named(text)).select_related("tenant").order_by("-id")[:OF_EACH]:
        yield Hit(kind, thing.name, str(thing.tenant), reverse(view, args=[thing.uid]))


def _named(text: str) -> Q:
    """Its name holds the text, or the text is its id."""
    try:
        return Q(name__icontains=text) | Q(uid=UUID(text))
    except ValueError:
        return Q(name__icontains=text)


def _places(user: User, text: str) -> Iterator[Hit]:
    for queue in queues.visible_to(user).filter(name__icontains=text)[:OF_EACH]:
        yield Hit("queue", queue.name, queue.cluster.name, reverse("queues:detail", args=[queue.name]))
    for span in queues.spans_visible_to(user).filter(name__icontains=text)[:OF_EACH]:
        yield Hit("queue", span.name, _("over clusters"), reverse("spans:detail", args=[span.name]))
    for node in clusters.nodes().filter(name__icontains=text)[:OF_EACH]:
        yield Hit("node", node.name, node.cluster.name, f"{reverse('clusters:nodes')}#node-{node.pk}")


def _people(user: User, text: str) -> Iterator[Hit]:
    for tenant in tenancy.visible_to(user).filter(Q(name__icontains=text) | Q(slug__icontains=text))[:OF_EACH]:
        yield Hit("tenant", tenant.name, tenant.slug, reverse("tenancy:detail", args=[tenant.slug]))
    manages = accounts.may(user, Permission.MANAGE_PEOPLE)
    known: Iterable[User] = tenancy.known_people(user).filter(
        Q(username__icontains=text) | Q(display_name__icontains=text)
    )[:OF_EACH]
    for person in known:
        theirs = f"{reverse('jobs:list')}?q={person.username}"
        path = reverse("accounts:edit", args=[person.pk]) if manages else theirs
        yield Hit("person", str(person), person.username, path)


def _help(text: str, language: str) -> Iterator[Hit]:
    wanted, left = text.casefold(), OF_EACH
    for name, title in documents.titles(language):
        found = next((line for line in documents.text(name, language).splitlines() if wanted in line.casefold()), None)
        if found is not None and left:
            left -= 1
            line = _MARKS.sub("", found).strip("#|- ")
            yield Hit("help", title, "" if line == title else line[:MOST], reverse("help:page", args=[name]))
