"""Filters of the job list: the same parameters in the URL of the list, in REST and on the command line."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

import django_filters
from django import forms
from django.contrib.postgres.fields import ArrayField
from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Upper
from django.http import QueryDict
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import get_current_timezone, is_naive, make_aware
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.exists_for_each import ExistsForEach
from hekla.apps.filter_sets import DeclaredFilters, QuickFilterSet
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.paging import Order
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid, Problem
from hekla.domain.phases import JobPhase, PodPhase
from hekla.lib import clock

PHASES = [(phase.value, phase.value) for phase in JobPhase]
SORTS = {
    "submitted": "submitted_at",
    "name": "name",
    "phase": "phase",
    "priority": "priority",
    "pods": "replicas",
}
SORT_VALUES = [f"{sign}{word}" for word in SORTS for sign in ("", "-")]
_DEFAULT = "-submitted"
_AGE = re.compile(r"(\d{1,4})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_GRAM = 3
_MOST_OWNERS = 100
_FEW = 1000
_NUMBERS = {"min_value": -(2**31), "max_value": 2**31 - 1}


class MomentField(forms.CharField):
    """A time, a day (its start), or an age: `2026-03-01T12:00Z`, `2026-03-01`, `24h`, `7d`."""

    def to_python(self, value: Any) -> Any:  # noqa: ANN401  (any value from the URL)
        text = str(super().to_python(value))
        if not text:
            return None
        if age := _AGE.fullmatch(text):
            return clock.now() - timedelta(**{_UNITS[age[2]]: int(age[1])})
        try:
            found = parse_datetime(text) or _first_moment(parse_date(text))
        except ValueError:
            found = None
        if found is None:
            raise forms.ValidationError(_("Enter a date (2026-03-01), a time, or an age, for example 24h or 7d."))
        return make_aware(found, get_current_timezone()) if is_naive(found) else found


def _first_moment(day: date | None) -> datetime | None:
    return datetime.combine(day, time()) if day else None


class _Moment(django_filters.Filter):  # type: ignore[misc]
    field_class = MomentField


class _WholeNumber(django_filters.Filter):  # type: ignore[misc]
    field_class = forms.IntegerField


class JobFilter(QuickFilterSet):
    """Jobs that match all given parameters; each is optional.

    `user`: the person who asks. `named`: the ids of the rows that parameters name (`_rows_named`). `finds_many`,
    `counts`: as of `narrow`. `narrowed`: its results.
    """

    user: User
    narrowed: dict[tuple[bool, bool], QuerySet[Job]]
    named: Mapping[str, Sequence[int]]
    finds_many = counts = False

    q = django_filters.CharFilter(method="matching", max_length=100)
    name = django_filters.CharFilter()
    phase = django_filters.MultipleChoiceFilter(choices=PHASES, distinct=False)
    queue = django_filters.CharFilter(method="belonging_to")
    tenant = django_filters.CharFilter(method="belonging_to")
    cluster = django_filters.CharFilter(method="belonging_to")
    owner = django_filters.CharFilter(method="belonging_to")
    kind = django_filters.CharFilter()
    priority_min = _WholeNumber(field_name="priority", lookup_expr="gte", **_NUMBERS)
    priority_max = _WholeNumber(field_name="priority", lookup_expr="lte", **_NUMBERS)
    submitted_after = _Moment(field_name="submitted_at", lookup_expr="gte")
    submitted_before = _Moment(field_name="submitted_at", lookup_expr="lt")
    finished_after = _Moment(field_name="finished_at", lookup_expr="gte")
    finished_before = _Moment(field_name="finished_at", lookup_expr="lt")
    failed_pods = django_filters.ChoiceFilter(choices=[("yes", "yes")], method="with_failed_pods")
    reason = django_filters.CharFilter(method="for_reason", max_length=64)
    whose = django_filters.ChoiceFilter(choices=[("mine", "mine")], method="of_person")

    class Meta:
        model = Job
        fields: list[str] = []

    def narrow(self, *, finds_many: bool = False, counts: bool = False, most: int = 0) -> QuerySet[Job]:
        """The jobs that match. `counts`: all of them are wanted, in any order; else the first ones of a list.

        `most`: only their primary keys, to count up to this number: at least so many, if there are.

        `finds_many`: many jobs are known to match the text, so scanning the jobs in list order finds the first ones
        sooner than collecting all matches from the index.
        """
        words = self.form.cleaned_data
        if most and self._has_many("reason"):
            return self._keys_by_reason(most)
        purpose = finds_many and bool(words.get("q")), counts and any(words.get(name) for name in _OF_PODS)
        if purpose not in self.narrowed:
            self.finds_many, self.counts = purpose
            self.narrowed[purpose] = self.filter_queryset(self.queryset.all())
        return self.narrowed[purpose]

    def _keys_by_reason(self, most: int) -> QuerySet[Job]:
        """Jobs with the reason, and jobs with such pods: an index has each of the two, and none has both together."""
        words, reason = self.form.cleaned_data, self.form.cleaned_data["reason"]
        self.finds_many, self.counts = False, True
        self.form.cleaned_data = {**words, "reason": ""}
        rest = self.filter_queryset(self.queryset.order_by())
        self.form.cleaned_data = words
        pods = Pod.objects.filter(job=OuterRef("pk"), reason=reason)
        own, of_pods = (some.values("pk")[:most] for some in (rest.filter(reason=reason), rest.filter(Exists(pods))))
        found: QuerySet[Job] = own.union(of_pods)
        return found

    def matching(self, jobs: QuerySet[Job], _name: str, text: str) -> QuerySet[Job]:
        """Jobs whose name or owner contains the text."""
        if self.finds_many:
            return jobs.filter(Q(name__icontains=text) | Q(owner__in=_owners(text).values("pk")))
        return _with_grams(jobs).filter(_name_holds(text) | Q(owner_id__in=self.named["q"]))

    def belonging_to(self, jobs: QuerySet[Job], name: str, _text: str) -> QuerySet[Job]:
        """Jobs of the named queue, tenant, cluster or owner."""
        return jobs.filter(**{f"{name}__in": self.named[name]})

    def with_failed_pods(self, jobs: QuerySet[Job], _name: str, _yes: str) -> QuerySet[Job]:
        """Jobs with a failed attempt, whatever the result of the job."""
        return jobs.filter(self._with_pods("failed_pods", phase=PodPhase.FAILED))

    def for_reason(self, jobs: QuerySet[Job], _name: str, reason: str) -> QuerySet[Job]:
        """Jobs that ended for this reason, or have a pod that did."""
        return jobs.filter(Q(reason=reason) | self._with_pods("reason", reason=reason))

    def _with_pods(self, name: str, **facts: str) -> Q:
        """Jobs with such a pod. `name`: the parameter.

        If few jobs have one, by their ids. If many do, the first ones of the list are soon found by asking job by job;
        to count jobs, the database collects those of all such pods first.
        """
        if not self._has_many(name):
            return Q(pk__in=self.named[name])
        pods = Pod.objects.filter(job=OuterRef("pk"), **facts)
        others = {word for word, value in self.form.cleaned_data.items() if value} - {name, "tenant"}
        return Q(Exists(pods) if others or self.counts else ExistsForEach(pods))

    def _has_many(self, name: str) -> bool:
        """Whether many jobs have such pods."""
        return len(self.named.get(name, ())) > _FEW

    def of_person(self, jobs: QuerySet[Job], _name: str, _mine: str) -> QuerySet[Job]:
        """The person's own jobs."""
        return jobs.filter(owner=self.user)


def narrowed(jobs: QuerySet[Job], query: Mapping[str, Any], user: User) -> QuerySet[Job]:
    """The jobs that match the query. Raises Invalid: an invalid parameter never returns all jobs."""
    return narrowing(jobs, query, user)()


def narrowing(jobs: QuerySet[Job], query: Mapping[str, Any], user: User) -> Callable[..., QuerySet[Job]]:
    """As `narrowed`, for several queries about these jobs: `JobFilter.narrow`."""
    names = JobFilter.base_filters.keys() & query.keys()
    if not names:
        return lambda **_purpose: jobs
    found = _asking(frozenset(names))(query, queryset=jobs)
    found.user, found.narrowed = user, {}
    if not found.is_valid():
        raise Invalid([Problem(name, str(text)) for name, texts in found.errors.items() for text in texts])
    found.named = _rows_named(found.form.cleaned_data)
    return found.narrow


_NAMED: dict[str, Callable[[str], QuerySet[Any]]] = {
    "queue": lambda text: Queue.objects.filter(name=text),
    "tenant": lambda text: Tenant.objects.filter(slug=text),
    "cluster": lambda text: Cluster.objects.filter(name=text),
    "owner": lambda text: User.objects.filter(username=text),
    "q": lambda text: _owners(text)[:_MOST_OWNERS],
}


_OF_PODS: dict[str, Callable[[str], QuerySet[Pod]]] = {
    "failed_pods": lambda _yes: Pod.objects.filter(phase=PodPhase.FAILED),
    "reason": lambda text: Pod.objects.filter(reason=text),
}


def _owners(text: str) -> QuerySet[User]:
    return accounts.everybody().filter(username__icontains=text).order_by()


def _rows_named(words: Mapping[str, Any]) -> dict[str, list[int]]:
    """The ids of the rows that each parameter names, from one query: of pods, those of their first jobs.

    With ids, the database can estimate how many jobs match. With names it expects few jobs of anyone, and reads and
    sorts all jobs of a large tenant for the first fifty.
    """
    sets = {word: find(words[word]) for word, find in _NAMED.items() if words.get(word)}
    rows = [found.annotate(word=Value(word)).values_list("word", "pk") for word, found in sets.items()]
    for word, of_pods in _OF_PODS.items():
        if words.get(word):
            pods = of_pods(words[word]).annotate(word=Value(word)).values_list("word", "job").order_by()
            rows.append(pods.distinct()[: _FEW + 1])
    named: dict[str, list[int]] = {word: [] for word in (*sets, *_OF_PODS)}
    for word, pk in rows[0].union(*rows[1:], all=True) if rows else ():
        named[word].append(pk)
    return named


@lru_cache(maxsize=256)
def _asking(names: frozenset[str]) -> type[JobFilter]:
    """The filter with only these parameters: creating and reading a field for each one costs milliseconds."""
    asking: type[JobFilter] = type("AskedJobFilter", (JobFilter,), {})
    own = {name: each for name, each in JobFilter.base_filters.items() if name in names}
    asking.base_filters = DeclaredFilters(own)
    return asking


def words(query: QueryDict) -> dict[str, list[str]]:
    """The filter parameters in the query of a URL, with their non-empty values."""
    return {
        name: values for name in JobFilter.base_filters if (values := [each for each in query.getlist(name) if each])
    }


def order(query: Mapping[str, Any]) -> Order:
    """The order of the list; newest first if the parameter is missing or unknown."""
    sort = str(query.get("sort") or _DEFAULT)
    field = SORTS.get(sort.removeprefix("-"))
    return Order(field, sort.startswith("-")) if field else Order(SORTS["submitted"], descending=True)


def _name_holds(text: str) -> Q:
    """The name contains the text. An index has all trigrams; shorter texts are searched in the names themselves."""
    holds = Q(name__icontains=text)
    grams = sorted({text.upper()[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)})
    return Q(grams__contains=grams) & holds if grams else holds


def _with_grams(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """The jobs with the alias that `_name_holds` uses."""
    return jobs.alias(grams=Func(Upper(F("name")), function="hekla_grams", output_field=ArrayField(TextField())))
