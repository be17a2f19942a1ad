"""The drawing of a flow while it is typed, and edits in it. The text of the form stays what is sent."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.flows import overview, selectors
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.flows import MAX_STEPS, FlowSpec
from hekla.domain.formats import flow_edits
from hekla.domain.formats.flow_edits import FlowEdit, FlowEditKind
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES

_MOST_TEMPLATES = 200
_MOST_READ_OUT = 12
_MOST_NAME = 253


def drawn(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    """The graph of the manifest as it is typed with the controls that edit it, or why there is none."""
    return render(request, "flows/_draft_drawing.html", _context(_text(request), tenant))


def edited(request: HttpRequest, tenant: Tenant) -> JsonResponse:
    """The text and the drawing after an edit, and what was done in words; or why the edit was refused."""
    post = request.POST
    words = {name: post.get(name, "").strip()[:_MOST_NAME] for name in ("step", "other", "name", "template")}
    if post.get("edit") not in [*FlowEditKind]:
        return JsonResponse({"problem": _("Unknown change.")})
    edit = FlowEdit(FlowEditKind(post["edit"]), **words)
    try:
        text = flow_edits.apply(_text(request), edit)
    except Invalid as error:
        return JsonResponse({"problem": " ".join(problem.message for problem in error.problems)})
    drawing = render_to_string("flows/_draft_drawing.html", _context(text, tenant), request)
    return JsonResponse({"text": text, "drawing": drawing, "words": _done(edit)})


def _text(request: HttpRequest) -> str:
    """The typed text. One that is too long stays so and is refused: an edit of its beginning would lose the rest."""
    return request.POST.get("text", "").replace("\r\n", "\n")[: MAX_MANIFEST_BYTES + 1]


def _context(text: str, tenant: Tenant) -> dict[str, Any]:
    """The drawing of the text's flow, and what its controls offer."""
    found = formats.inspect_flow(text)
    flow = found.loaded.flow if found.loaded else None
    if found.loaded is None or flow is None:
        return {"drawings": (), "is_valid": found.loaded is not None}
    names = [step.name for step in flow.steps]
    own = [template.name for template in found.loaded.templates]
    saved = selectors.templates_of(tenant).values_list("name", flat=True)[:_MOST_TEMPLATES]
    return {
        "drawings": overview.draft(flow),
        "is_valid": True,
        "words": _described(flow),
        "steps": [
            {
                "name": step.name,
                "template": step.template_name,
                "waits_for": flow.waits[step.name],
            }
            for step in flow.steps
        ],
        "templates": list(dict.fromkeys([*own, *saved])),
        "free_name": next(name for number in range(1, MAX_STEPS + 2) if (name := f"step-{number}") not in names),
    }


def _described(flow: FlowSpec) -> str:
    """The flow for people who cannot see the drawing."""
    count = len(flow.steps)
    counted = ngettext("%(n)s step.", "%(n)s steps.", count) % {"n": count}
    if count > _MOST_READ_OUT:
        return counted
    waits = [
        _("%(step)s waits for %(others)s.") % {"step": name, "others": _(", ").join(others)}
        for name, others in flow.waits.items()
        if others
    ]
    return " ".join([counted, *waits])


def _done(edit: FlowEdit) -> str:
    """What the edit did, in a sentence."""
    facts = {"step": edit.step, "other": edit.other, "name": edit.name}
    return {
        FlowEditKind.ADD: lambda: _("Added step %(name)s.") % facts,
        FlowEditKind.RENAME: lambda: _("Renamed step %(step)s to %(name)s.") % facts,
        FlowEditKind.REMOVE: lambda: _("Removed step %(step)s.") % facts,
        FlowEditKind.CONNECT: lambda: _("%(step)s now waits for %(other)s.") % facts,
        FlowEditKind.DISCONNECT: lambda: _("%(step)s no longer waits for %(other)s.") % facts,
    }[edit.kind]()
