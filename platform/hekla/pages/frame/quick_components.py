"""Renders the components of templates in fewer steps than Cotton does, with the same results.

A page has dozens of components, and Cotton looks up the template and the defaults of each one anew. A component whose
defaults are no constants, and one without any context of its page, are left to Cotton.
"""

from typing import Any, NamedTuple

from django.template import Context, Node, RequestContext
from django.template.base import Template, TextNode, VariableNode
from django.template.defaulttags import IfNode, URLNode
from django.template.library import SimpleNode
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django_cotton.templatetags import Attrs, InlineTemplate, UnprocessableDynamicAttr
from django_cotton.templatetags._component import AttrKind, CottonComponentNode
from django_cotton.templatetags._slot import CottonSlotNode
from django_cotton.templatetags._vars import CottonVarsNode
from django_cotton.utils import get_cotton_data

from hekla.pages.frame.constant_parts import is_constant

_STATELESS = (TextNode, VariableNode, TranslateNode, BlockTranslateNode, IfNode, URLNode, SimpleNode)
_SNAPSHOT = "_cotton_processor_snapshot"
_cotton_renders: Any = CottonComponentNode.render
_cotton_fills: Any = CottonSlotNode.render
_cotton_declares: Any = CottonVarsNode.render


class _Plan(NamedTuple):
    """The template of a component, and what all of its uses have in common. `hidden`: no attributes for `attrs`."""

    template: Template
    defaults: dict[str, Any]
    hidden: frozenset[str]


class _QuickAttrs(Attrs):  # type: ignore[misc]
    """The attributes of a component. Which ones it declares is known from its template."""

    def __init__(self, hidden: frozenset[str]) -> None:
        super().__init__({})
        self._exclude_from_str = hidden


def _plan_of(node: CottonComponentNode, context: Any) -> _Plan | None:  # noqa: ANN401  (any context)
    """None: this component is left to Cotton."""
    if node.only or "is" in node.attrs or ":is" in node.attrs or node.component_name == "component":
        return None
    template = node._get_cached_template(context, {})
    declared = [one for one in template.nodelist if isinstance(one, CottonVarsNode)]
    variables = [variable for one in declared for variable in one._prepared_vars]
    if any(one.kind is not AttrKind.STATIC or "-" in one.key for one in variables):
        return None
    names = {*(one.key for one in variables), *(name for one in declared for name in one.empty_vars)}
    return _Plan(template, {one.key: one.value for one in variables}, frozenset({"is", *names}))


def _render_component(node: CottonComponentNode, context: Any) -> str:  # noqa: ANN401  (any context)
    plan, texts = _known_of(node, context)
    language = get_language()
    if texts is not None and language in texts and context.autoescape:
        return texts[language]
    snapshot = getattr(context, _SNAPSHOT, None)
    if snapshot is None and isinstance(context, RequestContext) and hasattr(context, "_processors_index"):
        snapshot = context.dicts[context._processors_index]
    if plan is None or snapshot is None or context.template is None:
        return _cotton_renders(node, context)  # type: ignore[no-any-return]
    data, attrs, slots = _data_of(context), _QuickAttrs(plan.hidden), dict[str, str]()
    data["stack"].append({"key": node.component_name, "attrs": attrs, "slots": slots})
    _fill(attrs, node, context)
    slot = node.nodelist.render(context)
    state = {**plan.defaults, **slots, **attrs.make_attrs_accessible(), "attrs": attrs, "slot": slot}
    output = _output(plan.template, {**state, "cotton_data": data}, snapshot)
    data["stack"].pop()
    if texts is not None and context.autoescape:
        texts[language] = output
    return output


def _known_of(node: CottonComponentNode, context: Any) -> tuple[_Plan | None, dict[str | None, str] | None]:  # noqa: ANN401
    """The plan of this use, and its text in each language if it depends on nothing else."""
    known = node.__dict__
    if "plan" not in known:
        # the plan last: another thread that finds it must find the texts too
        known["texts"] = {} if is_constant([node], lambda one: _plan_of(one, context)) else None
        known["plan"] = _plan_of(node, context)
    return known["plan"], known["texts"]


def _fill(attrs: Attrs, node: CottonComponentNode, context: Any) -> None:  # noqa: ANN401  (any context)
    """Evaluate the attributes of this use."""
    values = attrs.dict
    for name, kind, value, compiled in node._prepared_attrs:
        if kind is AttrKind.ESCAPED and compiled:
            values[name] = _text(compiled, context)
        elif kind is not AttrKind.DYNAMIC and kind is not AttrKind.UNQUOTED:
            values[name] = value
        else:
            try:
                resolved = compiled.resolve(context)
            except UnprocessableDynamicAttr:
                if kind is AttrKind.UNQUOTED:
                    values[name] = value
                else:
                    attrs.unprocessable(name)
                continue
            if name == "attrs" and kind is AttrKind.DYNAMIC:
                values.update(resolved)
            else:
                values[name] = resolved


def _text(value: InlineTemplate, context: Any) -> Any:  # noqa: ANN401  (any context)
    """The text of an attribute. Most consist of nodes that keep no state, so they need no state of their own."""
    known = value.__dict__
    if "is_stateless" not in known:
        known["is_stateless"] = all(isinstance(node, _STATELESS) for node in value.nodelist.get_nodes_by_type(Node))
    return value.nodelist.render(context) if known["is_stateless"] else value.render(context)


def _output(template: Template, state: dict[str, Any], snapshot: dict[str, Any]) -> str:
    """The component with these variables and those of all pages, and nothing of the template that uses it."""
    inner: Any = Context()
    inner.dicts += (snapshot, state)
    setattr(inner, _SNAPSHOT, snapshot)
    inner.template, inner.template_name = template, template.name
    inner.render_context.template = template
    inner.render_context.dicts.append({})
    return template._render(inner)  # type: ignore[attr-defined, no-any-return]


def _data_of(context: Any) -> dict[str, Any]:  # noqa: ANN401  (any context)
    """What Cotton keeps in a context: the components that are being rendered."""
    for scope in reversed(context.dicts):
        if "cotton_data" in scope:
            return scope["cotton_data"]  # type: ignore[no-any-return]
    return get_cotton_data(context)  # type: ignore[no-any-return]


def _render_slot(node: CottonSlotNode, context: Any) -> str:  # noqa: ANN401  (any context)
    stack = _data_of(context)["stack"]
    if not stack:
        return _cotton_fills(node, context)  # type: ignore[no-any-return]
    stack[-1]["slots"][node.slot_name] = SafeString(node.nodelist.render(context))
    return ""


def _render_vars(node: CottonVarsNode, context: Any) -> str:  # noqa: ANN401  (any context)
    return "" if _data_of(context)["stack"] else _cotton_declares(node, context)


def replace_steps() -> None:
    """Let all templates render their components so."""
    CottonComponentNode.render = _render_component
    CottonSlotNode.render = _render_slot
    CottonVarsNode.render = _render_vars
