"""Volumes of a job as rows of the form: each row is a volume, mounted at one path in all tasks or in those named.

Volumes that rows cannot express (a part of a volume, two paths of one volume, a storage class) stay passthrough values,
then with all other volumes of the job.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.jobspec import JobSpec
from hekla.domain.volumes import MAX_VOLUMES, AccessMode, Medium, VolumeMount, VolumeSpec, is_mounted
from hekla.pages.job_forms import amounts
from hekla.pages.job_forms.amounts import AmountField
from hekla.pages.job_forms.passthrough_fields import is_line

PREFIX = "volumes"
_PATH = re.compile(r"(?:tasks\.(?P<task>\d+)\.volume_mounts|volumes)\.(?P<number>\d+)(?:\.(?P<field>.+))?")
CLAIM, NEW, SHARED, FOLDER, MEMORY = "claim", "new", "shared", "folder", "memory"
_SOURCES = [
    (FOLDER, gettext_lazy("Empty folder of each pod")),
    (MEMORY, gettext_lazy("Empty folder in memory, of each pod")),
    (NEW, gettext_lazy("New claim, for pods on one node")),
    (SHARED, gettext_lazy("New claim, for pods on several nodes")),
    (CLAIM, gettext_lazy("Existing claim of the cluster")),
]
_MODES = {NEW: AccessMode.READ_WRITE_ONCE, SHARED: AccessMode.READ_WRITE_MANY}
_FIELDS = {"volume_claim_name": "claim", "storage": "size", "size_limit": "size", "mount_path": "path"}
Values = dict[str, Any]


class VolumeForm(forms.Form):
    """One volume with its mount. A row without path, claim and size counts as absent."""

    name = forms.CharField(required=False, max_length=63, widget=forms.HiddenInput)
    source = forms.ChoiceField(label=gettext_lazy("Volume"), choices=_SOURCES, initial=FOLDER)
    claim = forms.CharField(
        label=gettext_lazy("Name of the claim"),
        required=False,
        max_length=253,
        widget=forms.TextInput({"list": "known-claims"}),
        help_text=gettext_lazy("Only for an existing claim. Clusters that run processes on one machine have none."),
    )
    size = AmountField(
        "memory",
        label=gettext_lazy("Size"),
        help_text=gettext_lazy("Required for a new claim, a limit for an empty folder."),
    )
    path = forms.CharField(
        label=gettext_lazy("Mount path"),
        required=False,
        max_length=1024,
        help_text=gettext_lazy("For example /work/data. Pods that are processes of a machine need a path below /work."),
    )
    tasks = forms.CharField(
        label=gettext_lazy("Tasks"),
        required=False,
        max_length=4000,
        help_text=gettext_lazy("Roles that mount it, separated by commas. Leave empty for all."),
    )
    read_only = forms.BooleanField(label=gettext_lazy("Read only"), required=False, initial=False)

    def clean_tasks(self) -> list[str]:
        """The names of the tasks that mount it; none for all."""
        return re.findall(r"[^\s,，]+", self.cleaned_data["tasks"])

    def clean(self) -> Values:
        """The cleaned data. Reports what the source needs and does not have, or has and does not need."""
        cleaned = super().clean() or self.cleaned_data
        if self.is_absent:
            return cleaned
        source = cleaned.get("source")
        if not cleaned.get("path") and "path" not in self.errors:
            self.add_error("path", _("Enter the path where the pods find the volume, for example /work/data."))
        if source == CLAIM and not cleaned.get("claim"):
            self.add_error("claim", _("Enter the name of the claim."))
        if source in _MODES and not cleaned.get("size") and "size" not in self.errors:
            self.add_error("size", _("Enter the size of the claim, for example 10Gi."))
        if source != CLAIM and cleaned.get("claim"):
            self.add_error("claim", _("Only for an existing claim. Choose it as the volume, or clear this field."))
        if source == CLAIM and cleaned.get("size"):
            self.add_error("size", _("An existing claim has its size. Clear this field."))
        return cleaned

    @property
    def is_absent(self) -> bool:
        """Whether nothing was typed in the row."""
        return not any(str(self[name].value() or "").strip() for name in ("path", "claim", "size", "tasks"))


VolumeFormSet = forms.formset_factory(
    VolumeForm, extra=0, min_num=0, max_num=MAX_VOLUMES, absolute_max=MAX_VOLUMES, validate_max=True
)


def refuse_unknown_tasks(formset: "forms.BaseFormSet[VolumeForm]", names: Sequence[str]) -> None:
    """Report tasks that the job does not have, at their rows."""
    for form in formset:
        if form.errors or form.is_absent:
            continue
        if unknown := [name for name in form.cleaned_data["tasks"] if name not in names]:
            parts = {"name": unknown[0][:60], "names": ", ".join(names)}
            form.add_error("tasks", _("The job has no task “%(name)s”. Its tasks: %(names)s.") % parts)


class VolumeRows:
    """The rows without errors, as volumes and mounts of a JobSpec document. `besides`: names that are in use."""

    def __init__(
        self, formset: "forms.BaseFormSet[VolumeForm]", names: Collection[str], besides: Collection[str]
    ) -> None:
        self._forms = [form for form in formset if not form.errors and not form.is_absent]
        self._names = [*names]
        self._volumes = _named([form.cleaned_data["name"] for form in self._forms], besides)
        self._first = 0

    def volumes(self, before: Sequence[Any]) -> list[Any]:
        """The volumes of the document: those before, then one for each row."""
        self._first = len(before)
        rows = zip(self._volumes, self._forms, strict=True)
        return [*before, *(_volume(name, form.cleaned_data) for name, form in rows)]

    def mounts(self, task: str, before: Sequence[Any]) -> list[Any]:
        """The mounts of a task: those before, then one for each row that it mounts."""
        rows = zip(self._volumes, self._forms, strict=True)
        mounts = (_mount(name, form.cleaned_data) for name, form in rows if _mounts(form, task))
        return [*before, *mounts]

    def place(self, path: str, mounts_before: Sequence[int]) -> tuple[forms.Form, str] | None:
        """The row and field of a problem's path in the document; None for a path that is not of a row.

        `mounts_before`: for each task the number of its mounts that are not of rows.
        """
        match = _PATH.fullmatch(path)
        if match is None:
            return None
        rows, number = self._forms, int(match["number"]) - self._first
        if match["task"]:
            task = int(match["task"])
            rows = [form for form in self._forms if _mounts(form, self._names[task])]
            number = int(match["number"]) - mounts_before[task]
        field = _FIELDS.get((match["field"] or "").rpartition(".")[2], "source")
        return (rows[number], field) if 0 <= number < len(rows) else None


def _named(typed: Sequence[str], besides: Collection[str]) -> list[str]:
    """A distinct name for each row: the one that it has, else `volume-1` and so on. `besides`: not for rows."""
    used, found = {*besides, *typed}, []
    for name in typed:
        free = name
        number = 0
        while not free or free in found or free in besides:
            number += 1
            free = f"volume-{number}" if f"volume-{number}" not in used else ""
        found.append(free)
    return found


def _volume(name: str, row: Mapping[str, Any]) -> Values:
    source, size = row["source"], row["size"]
    if source == CLAIM:
        return {"name": name, "volume_claim_name": row["claim"]}
    if source in _MODES:
        return {"name": name, "volume_claim": {"storage": size, "access_modes": [str(_MODES[source])]}}
    medium = Medium.MEMORY if source == MEMORY else Medium.DISK
    return {"name": name, "empty_dir": {"medium": str(medium), "size_limit": size}}


def _mount(name: str, row: Mapping[str, Any]) -> Values:
    return {"name": name, "mount_path": row["path"], "read_only": row["read_only"]}


def _mounts(form: forms.Form, task: str) -> bool:
    return not form.cleaned_data["tasks"] or task in form.cleaned_data["tasks"]


def rows_of(spec: JobSpec) -> list[Values]:
    """The rows of a job's volumes; none if rows cannot express all of them exactly."""
    first: dict[str, VolumeMount] = {}
    for task in spec.tasks:
        for mount in task.volume_mounts:
            first.setdefault(mount.name, mount)
    volumes = {volume.name: volume for volume in spec.volumes}
    rows = [_row(spec, volumes[name], mount) for name, mount in first.items()]
    return rows if _expresses(rows, spec) else []


def _row(spec: JobSpec, volume: VolumeSpec, mount: VolumeMount) -> Values:
    tasks = [task.name for task in spec.tasks if is_mounted(task, volume.name)]
    return {
        "name": volume.name,
        "source": _source(volume),
        "claim": volume.volume_claim_name,
        "size": _size(volume),
        "path": mount.mount_path,
        "tasks": "" if len(tasks) == len(spec.tasks) else ", ".join(tasks),
        "read_only": mount.read_only,
    }


def _size(volume: VolumeSpec) -> str:
    if volume.volume_claim:
        return volume.volume_claim.storage
    return volume.empty_dir.size_limit if volume.empty_dir else ""


def _source(volume: VolumeSpec) -> str:
    if volume.volume_claim:
        return NEW if volume.volume_claim.access_modes == (AccessMode.READ_WRITE_ONCE,) else SHARED
    if volume.empty_dir:
        return MEMORY if volume.empty_dir.medium is Medium.MEMORY else FOLDER
    return CLAIM


def _expresses(rows: Sequence[Values], spec: JobSpec) -> bool:
    if not all(is_line(row["path"]) and (not row["size"] or _is_unchanged(row["size"])) for row in rows):
        return False
    volumes = tuple(sorted((VolumeSpec(**_volume(row["name"], row)) for row in rows), key=lambda one: one.name))
    return volumes == spec.volumes and all(
        task.volume_mounts == tuple(VolumeMount(**_mount(row["name"], row)) for row in rows if _is_in(task.name, row))
        for task in spec.tasks
    )


def _is_unchanged(size: str) -> bool:
    return is_line(size) and amounts.is_unchanged("memory", size)


def _is_in(task: str, row: Values) -> bool:
    return not row["tasks"] or task in row["tasks"].split(", ")
