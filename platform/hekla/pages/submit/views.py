"""The submission of a job or sweep, as a form or a manifest. Each can become the other, with what was typed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts.roles import Permission
from hekla.apps.forms import attach
from hekla.apps.jobs import selectors
from hekla.apps.jobs.clone import JobClone, clone_job, clone_spec
from hekla.apps.presets import selectors as presets
from hekla.apps.presets import services as keeping
from hekla.apps.presets.models import Preset
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats, spec_changes
from hekla.domain.errors import HeklaError, Invalid, NotFound, Problem, Refused
from hekla.domain.jobspec import MAX_FILE_BYTES, JobSpec
from hekla.lib import clock
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.job_forms import secret_texts
from hekla.pages.job_forms.amounts import OFFERED
from hekla.pages.job_forms.forms import PresetForm
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES, JobManifestForm, UploadForm, yaml_editor
from hekla.pages.job_forms.submission_form import InitialValues, SubmissionForm
from hekla.pages.submit import choices, equivalents, framework_defaults, manifest_checks, preset_mapping, undo
from hekla.pages.submit import presets as beginnings
from hekla.pages.submit.form_mapping import filled
from hekla.pages.submit.options import SWEEP, Draft, SubmissionOptions

Secrets = Mapping[str, str]
_SAVED = "saved:"
_KINDS = (*beginnings.KINDS, beginnings.SWEEP)
_NAMES_INCLUDED = frozenset({"template", "preset"})
"""The parameter of the address, and its former name."""


@require_http_methods(["GET", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The form. A POST submits it, checks it (as JSON), changes its kind, shows it as YAML, or saves it as a preset."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    if request.POST.get("do") == "check":
        return _checked(request, tenant)
    if request.method == "POST":
        return _refilled(request, tenant) or _posted_form(request, tenant)
    copy, open_ones = _copy(request, tenant), choices.open_queues(tenant)
    offered = list(_offered(request, tenant))
    preset = None if copy else _saved(request, offered)
    first = filled(copy.spec) if copy else _beginning(request, tenant, preset, open_ones)
    if request.GET.get("kind") == SWEEP:
        first.job["shape"] = SWEEP
    beside = SubmissionOptions(None, first.job.get("shape", ""), person(request), first=beginnings.swept_by(first))
    base_preset = str(preset.uid) if preset else _included(request)
    return _form_page(
        request,
        tenant,
        choices.submission_form(None, first, tenant, open_ones),
        beside,
        copy.secrets if copy else (),
        base_preset=base_preset,
        presets=offered,
    )


def _refilled(request: HttpRequest, tenant: Tenant) -> HttpResponse | None:
    """The draft with other content, if the request asks for that. A chosen file is never ignored."""
    do = request.POST.get("do", "")
    if do == "undo":
        return _undone(request, tenant)
    if do == "back":
        return _back(request, tenant)
    if do == "upload" or request.FILES:
        return _uploaded(request, tenant)
    if do in {kind.name for kind in _KINDS}:
        return _turned(request, tenant)
    if do.startswith(_SAVED):
        return _apply_preset(request, tenant)
    framework = next((each for each in beginnings.FRAMEWORKS if each.name == do), None)
    return _apply_framework(request, tenant, framework) if framework else None


def _undone(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    """The earlier draft. The current one becomes its earlier draft, so that undo can be undone."""
    now, filling = undo.draft_of(request.POST), undo.carried(request.POST)
    if filling is None:
        return _draft_page(request, tenant, now)
    back = undo.AppliedFill(_("Undone."), now)
    return _draft_page(request, tenant, filling.before, filling=back)


def _back(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    """A draft that was left, as another page contained it."""
    left = undo.carried(request.POST)
    return _draft_page(request, tenant, left.before, filling=None) if left else redirect("jobs:submit")


def _uploaded(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    """The draft with the content of the chosen file; unchanged, with the problems, if the file is invalid."""
    draft, upload = undo.draft_of(request.POST), UploadForm(request.POST, request.FILES)
    try:
        loaded = formats.load(upload.cleaned_data["upload"]) if upload.is_valid() else None
    except HeklaError as error:
        upload.refuse(error)
    if upload.errors or loaded is None:
        return _draft_page(request, tenant, draft, upload=upload)
    filling = _filling_from(upload.file_name, draft)
    if "text" in draft:
        return _text_page(request, tenant, draft, upload.cleaned_data["upload"], filling)
    secrets = secret_texts.joined(draft.get("secrets", ""), loaded.secrets)
    beside = SubmissionOptions(draft, draft.get("shape", ""), person(request), is_sent=False)
    return _filled_page(request, tenant, loaded, secrets, beside, filling=filling)


def _filling_from(title: str, draft: QueryDict) -> undo.AppliedFill:
    return undo.AppliedFill(_("The form now has the job from “%(file)s”.") % {"file": title}, draft)


def _text_page(
    request: HttpRequest, tenant: Tenant, draft: QueryDict, text: str, filling: undo.AppliedFill
) -> HttpResponse:
    """The draft with another text."""
    changed = draft.copy()
    changed["text"] = text
    return _draft_page(request, tenant, changed, filling=filling)


def _apply_framework(request: HttpRequest, tenant: Tenant, framework: beginnings.StartingForm) -> HttpResponse:
    """The draft as a job of the framework, with the other typed values."""
    typed = choices.submission_form(undo.draft_of(request.POST), InitialValues(), tenant).typed()
    first = framework_defaults.apply_framework(typed, framework)
    return _changed_page(request, tenant, typed, first, title=framework.title, base_preset=framework.name)


def _apply_preset(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    """The draft with the values of the chosen preset; unchanged if that was deleted."""
    draft = undo.draft_of(request.POST)
    try:
        preset = _preset(request.POST["do"].removeprefix(_SAVED), request)
    except NotFound as error:
        messages.error(request, error.message)
        return _draft_page(request, tenant, draft)
    if "text" in draft:
        return _apply_preset_to_text(request, tenant, draft, preset)
    typed = choices.submission_form(draft, InitialValues(), tenant).typed()
    first = preset_mapping.apply_preset(typed, _base(request, tenant, typed), _first_of(preset, tenant))
    return _changed_page(request, tenant, typed, first, title=preset.name, base_preset=str(preset.uid))


def _apply_preset_to_text(request: HttpRequest, tenant: Tenant, draft: QueryDict, preset: Preset) -> HttpResponse:
    """The draft with the preset as its whole text: a free text cannot be merged."""
    text = formats.dump_whole(clone_spec(presets.spec_of(preset), tenant).spec)
    return _text_page(request, tenant, draft, text, _filling_from(preset.name, draft))


def _base(request: HttpRequest, tenant: Tenant, typed: InitialValues) -> InitialValues:
    """The draft before anything was typed."""
    try:
        return _first_of(_preset(request.POST.get("base_preset", ""), request), tenant)
    except NotFound:
        return _named(framework_defaults.began_with(typed), tenant, choices.open_queues(tenant))


def _changed_page(
    request: HttpRequest, tenant: Tenant, typed: InitialValues, first: InitialValues, *, title: str, base_preset: str
) -> HttpResponse:
    draft = undo.draft_of(request.POST)
    beside = SubmissionOptions(draft, first.job["shape"], person(request), is_sent=False)
    filling = undo.AppliedFill(_describe_filling(title, framework_defaults.differences(typed, first)), draft)
    return _form_page(
        request, tenant, choices.submission_form(None, first, tenant), beside, filling=filling, base_preset=base_preset
    )


def _describe_filling(title: str, changed: Sequence[str]) -> str:
    if not changed:
        return _("No change: the form already has the values of “%(title)s”.") % {"title": title}
    parts = {"title": title, "fields": ", ".join(changed)}
    return _("Filled in from “%(title)s”: %(fields)s. Other fields are unchanged.") % parts


def _draft_page(
    request: HttpRequest,
    tenant: Tenant,
    draft: QueryDict,
    **more: Any,  # noqa: ANN401
) -> HttpResponse:
    """A draft with its typed values, valid or not, on the page where it was typed."""
    shape = draft.get("shape", "")
    beside = SubmissionOptions(draft, shape, person(request), is_sent=False)
    if "text" in draft:
        return _yaml_page(request, tenant, JobManifestForm(initial=draft.dict()), beside, shape=shape, **more)
    typed = choices.submission_form(draft, InitialValues(), tenant).typed()
    more = {"base_preset": draft.get("base_preset", "")} | more
    return _form_page(request, tenant, choices.submission_form(None, typed, tenant), beside, **more)


def _turned(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    """The form for another kind of job, with all typed values, valid or not."""
    kind, typed = request.POST["do"], choices.submission_form(request.POST, InitialValues(), tenant).typed()
    first = beginnings.turned(typed, kind)
    beside = SubmissionOptions(request.POST, kind, person(request), is_sent=False, first=beginnings.swept_by(first))
    return _form_page(request, tenant, choices.submission_form(None, first, tenant), beside, turned_to=kind)


def _posted_form(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    form, do = choices.submission_form(request.POST, InitialValues(), tenant), request.POST.get("do")
    beside = SubmissionOptions(request.POST, form.shape, person(request))
    spec = form.spec()
    if spec is not None and do in ("copy", "yaml"):
        return _as_text(request, tenant, form, beside, spec)
    if spec is None or not (do == "keep" or beside.is_valid()):
        if do not in ("yaml", "keep"):
            _find_problems(request, tenant, form, beside)
        return _form_page(request, tenant, form, beside)
    draft = Draft(spec, tenant, person(request), form.secrets)
    try:
        if do == "look":
            return _form_page(request, tenant, form, beside, **beside.look(draft, now=clock.now()))
        if do == "keep":
            return _save_preset(request, tenant, spec)
        address = beside.submit(draft, now=clock.now())
    except HeklaError as error:
        beside.show(error, form.show)
        if do != "keep":
            _find_problems(request, tenant, form, beside)
        return _form_page(request, tenant, form, beside)
    return _made(request, address, spec.remarks)


def _as_text(
    request: HttpRequest, tenant: Tenant, form: SubmissionForm, beside: SubmissionOptions, spec: JobSpec
) -> HttpResponse:
    """The job as its manifest, or the form with the job as commands and programs."""
    if request.POST["do"] == "yaml":
        return _yaml_page(request, tenant, _manifest_form(spec, form.secrets), beside)
    found = equivalents.equivalents(spec, tenant.slug, request.build_absolute_uri("/").rstrip("/"))
    return _form_page(request, tenant, form, beside, equivalents=found)


def _checked(request: HttpRequest, tenant: Tenant) -> JsonResponse:
    """The problems of a draft by the id of their field, while a person fills in the form."""
    form = choices.submission_form(request.POST, InitialValues(), tenant)
    beside = SubmissionOptions(request.POST, form.shape, person(request))
    _find_problems(request, tenant, form, beside)
    return JsonResponse({"problems": form.problems | beside.problems})


def _find_problems(request: HttpRequest, tenant: Tenant, form: SubmissionForm, beside: SubmissionOptions) -> None:
    """Show every problem of the draft in its forms, also those that only a submission would find."""
    beside.is_valid()
    spec = form.draft()
    if spec is not None:
        draft = Draft(spec, tenant, person(request), form.secrets)
        beside.show(Invalid(beside.find_problems(draft, now=clock.now())), form.show)


@require_http_methods(["GET", "POST"])
def submit_yaml(request: HttpRequest) -> HttpResponse:
    """The manifest. A POST submits it, checks it (as JSON), shows it as a form, or saves it as a preset."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    if request.method == "POST":
        return _posted_yaml(request, tenant)
    copy = _copy(request, tenant)
    form = _manifest_form(copy.spec) if copy else JobManifestForm()
    return _yaml_page(request, tenant, form, SubmissionOptions(None, "", person(request)), copy.secrets if copy else ())


def _posted_yaml(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    do = request.POST.get("do", "")
    if do == "check":
        return _checked_yaml(request, tenant)
    if do in ("undo", "upload"):
        return _undone(request, tenant) if do == "undo" else _uploaded(request, tenant)
    if do.startswith(_SAVED):
        return _apply_preset(request, tenant)
    form = JobManifestForm(request.POST, request.FILES)
    beside = SubmissionOptions(request.POST, request.POST.get("shape", ""), person(request))
    goes_on = do in ("form", "keep")
    if not form.is_valid() or not (goes_on or beside.is_valid()):
        return _yaml_page(request, tenant, form, beside)
    cleaned = form.cleaned_data
    try:
        return _done(request, tenant, cleaned, beside)
    except HeklaError as error:
        form = _as_typed(request, cleaned["text"])
        beside.show(error, lambda refusal: attach(form, refusal))
        return _yaml_page(request, tenant, form, beside)


def _checked_yaml(request: HttpRequest, tenant: Tenant) -> JsonResponse:
    """The problems of a manifest by line, and what can be typed in it, while a person edits it."""
    form, shape = JobManifestForm(request.POST), request.POST.get("shape", "")
    form.is_valid()
    beside = SubmissionOptions(request.POST, shape, person(request), is_sent=False)

    def judge(loaded: formats.LoadedJob) -> list[Problem]:
        secrets = {**loaded.secrets, **form.cleaned_data.get("secrets", {})}
        return beside.find_problems(Draft(loaded.spec, tenant, person(request), secrets), now=clock.now())

    text = request.POST.get("text", "")[:MAX_MANIFEST_BYTES]
    return JsonResponse(manifest_checks.check(text, formats.inspect(text), judge, choices.offered_values(tenant)))


def _done(request: HttpRequest, tenant: Tenant, cleaned: dict[str, Any], beside: SubmissionOptions) -> HttpResponse:
    """The response to a valid manifest, according to the requested action. Raises what the action raises."""
    loaded, do = formats.load(cleaned["text"]), request.POST.get("do")
    secrets = {**loaded.secrets, **cleaned["secrets"]}
    if do == "form":
        return _filled_page(request, tenant, loaded, secret_texts.write(secrets), beside)
    if do == "keep":
        return _save_preset(request, tenant, loaded.spec)
    draft = Draft(loaded.spec, tenant, person(request), secrets)
    if do == "look":
        return _yaml_page(
            request, tenant, _as_typed(request, cleaned["text"]), beside, **beside.look(draft, now=clock.now())
        )
    return _made(request, beside.submit(draft, now=clock.now()), loaded.warnings)


def _as_typed(request: HttpRequest, text: str) -> JobManifestForm:
    """The manifest form with this text, which may come from an upload."""
    form = JobManifestForm({**request.POST.dict(), "text": text})
    form.is_valid()
    return form


def _made(request: HttpRequest, address: str, warnings: Sequence[str]) -> HttpResponse:
    """A redirect to the new job or batch, with warnings as messages."""
    for warning in warnings:
        messages.warning(request, warning)
    return redirect(address)


def _filled_page(
    request: HttpRequest,
    tenant: Tenant,
    loaded: formats.LoadedJob,
    secrets: str,
    beside: SubmissionOptions,
    **more: Any,  # noqa: ANN401
) -> HttpResponse:
    for warning in loaded.warnings:
        messages.warning(request, warning)
    first = filled(loaded.spec)
    first.job["secrets"] = secrets
    if beside.is_sweep:
        first.job["shape"] = SWEEP
    return _form_page(request, tenant, choices.submission_form(None, first, tenant), beside, **more)


def _manifest_form(spec: JobSpec, secrets: Secrets | None = None) -> JobManifestForm:
    return JobManifestForm(initial={"text": formats.dump_whole(spec), "secrets": secret_texts.write(secrets or {})})


def _save_preset(request: HttpRequest, tenant: Tenant, spec: JobSpec) -> HttpResponse:
    """Save the current job as a preset, and open the form with it."""
    preset_form = PresetForm(request.POST)
    preset_form.is_valid()
    name, whose = preset_form.cleaned_data.get("name", ""), tenant if preset_form.cleaned_data["for_tenant"] else None
    try:
        preset = keeping.save(name=name, spec=spec, user=person(request), tenant=whose, now=clock.now())
    except Refused as error:
        raise Refused(error.message) from error
    messages.success(request, _("Saved as template “%s”.") % preset.name)
    return redirect(f"{reverse('jobs:submit')}?saved={preset.uid}")


def _beginning(
    request: HttpRequest, tenant: Tenant, preset: Preset | None, open_ones: Sequence[Queue]
) -> InitialValues:
    """The preset if there is one; else the initial job that the address names; else a single process."""
    if preset:
        return _first_of(preset, tenant)
    return _named(beginnings.beginning(_included(request)).first, tenant, open_ones)


def _included(request: HttpRequest) -> str:
    """The name of the template that comes with Hekla and that the address names; empty if none."""
    return next((request.GET[name] for name in sorted(_NAMES_INCLUDED) if name in request.GET), "")


def _named(first: InitialValues, tenant: Tenant, open_ones: Sequence[Queue]) -> InitialValues:
    named = first.copy()
    named.job.update(name=selectors.free_name(tenant, "train"), queue=choices.usual_queue(open_ones))
    return named


def _first_of(preset: Preset, tenant: Tenant) -> InitialValues:
    return filled(clone_spec(presets.spec_of(preset), tenant).spec)


def _saved(request: HttpRequest, offered: Iterable[Preset]) -> Preset | None:
    """The preset that the address names; the default preset if it names no beginning at all."""
    if "saved" not in request.GET:
        return None if _NAMES_INCLUDED & request.GET.keys() else presets.default_of(offered)
    return _preset(request.GET["saved"], request)


def _preset(uid: str, request: HttpRequest) -> Preset:
    """The preset of this UID. Raises NotFound."""
    try:
        return presets.get(UUID(uid), person(request))
    except ValueError as error:
        raise NotFound(_("Unknown template.")) from error


def _form_page(
    request: HttpRequest,
    tenant: Tenant,
    form: SubmissionForm,
    beside: SubmissionOptions,
    secrets: Sequence[str] = (),
    **more: Any,  # noqa: ANN401
) -> HttpResponse:
    draft = next(
        (request.GET[name] for name in ("clone", "saved", *sorted(_NAMES_INCLUDED)) if name in request.GET), "usual"
    )
    context = {
        "tenant": tenant,
        "form": form.job,
        "tasks": form.tasks,
        "files": form.files,
        "volumes": form.volumes,
        "claims": form.claims,
        "draft": draft,
        "base_preset": request.POST.get("base_preset", ""),
        "also": form.also,
        "secrets": secrets,
        "beside": beside,
        "shape": form.shape,
        "several": form.is_of_several,
        "kinds": _KINDS,
        "frameworks": beginnings.FRAMEWORKS,
        "upload": UploadForm(),
        "most_bytes": MAX_MANIFEST_BYTES,
        "most_file_bytes": MAX_FILE_BYTES,
        "amounts": OFFERED,
        "filling": undo.carried(request.POST),
    }
    return render(request, "jobs/submit.html", context | _side(request, tenant) | more)


def _side(request: HttpRequest, tenant: Tenant) -> dict[str, Any]:
    """The context that both pages share, whatever the job is."""
    return {
        "presets": _offered(request, tenant),
        "keep": PresetForm(request.POST or None),
        "may_keep_for_tenant": current_tenant.may(request, tenant, Permission.KEEP_TENANT_PRESETS),
    }


def _offered(request: HttpRequest, tenant: Tenant) -> QuerySet[Preset]:
    """The presets of the person and the tenant, whose jobs are read only if needed."""
    return presets.offered(person(request), tenant).defer("spec")


def _yaml_page(
    request: HttpRequest,
    tenant: Tenant,
    form: JobManifestForm,
    beside: SubmissionOptions,
    secrets: Sequence[str] = (),
    **more: Any,  # noqa: ANN401
) -> HttpResponse:
    context: dict[str, Any] = {"tenant": tenant, "form": form, "most_bytes": MAX_MANIFEST_BYTES, "secrets": secrets}
    form.fields["text"].widget.attrs |= yaml_editor(request)
    context |= {"beside": beside, "shape": request.POST.get("shape", ""), "upload": form}
    context["filling"] = undo.carried(request.POST)
    return render(request, "jobs/submit_yaml.html", context | more | _side(request, tenant))


def _tenant(request: HttpRequest) -> Tenant | None:
    return current_tenant.tenant(request)


def _copy(request: HttpRequest, tenant: Tenant) -> JobClone | None:
    """A clone of the job that the address names, with the changes that it names; None if it names no job."""
    try:
        uid = UUID(request.GET.get("clone", ""))
    except ValueError:
        return None
    copy = clone_job(selectors.get(uid, person(request)), tenant)
    return replace(copy, spec=spec_changes.apply_changes(copy.spec, spec_changes.parse(request.GET.get("with", ""))))
