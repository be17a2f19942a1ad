"""A field of a form, built in Python as `c-field`: a large form has fifty of them."""

from django.forms import BoundField
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.pages.frame import html
from hekla.pages.frame.html import text


def form_field(field: BoundField, unit: str = "", wide: object = "", unmarked: object = "") -> SafeString:
    """The label, the control with its unit, the help and the problems. See `components/field.html`."""
    is_check = field.widget_type == "checkbox"
    errors, name = field.errors, text(field.auto_id)  # a field's name may hold what people typed: the name of a file
    marks = [("field-wide", wide), ("field-wrong", errors), ("field-check", is_check)]
    kind = " ".join(["field", *(mark for mark, is_set in marks if is_set)])
    is_optional = not (field.field.required or unmarked or is_check)
    note = f" <small>{text(_('optional'))}</small>" if is_optional else ""
    after = f'<span class="unit">{text(unit)}</span>' if unit else ""
    help_line = f'<p class="help" id="{name}_helptext">{text(field.help_text)}</p>' if field.help_text else ""
    problems = "".join(f'<p class="problem">{html.icon("warning")}{text(error)}</p>' for error in errors)
    return SafeString(
        f'<div class="{kind}"><label for="{text(field.id_for_label)}">{text(field.label)}{note}</label>'
        f'<span class="control">{field}{after}</span><div class="field-notes">{help_line}'
        f'<div class="problems" id="{name}_error">{problems}</div></div></div>'
    )
