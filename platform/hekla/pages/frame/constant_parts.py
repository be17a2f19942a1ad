"""Finds the parts of templates whose text depends on nothing but the language, so that it is made once for each.

A page has a dozen components of this kind: a button with its label and address, an empty state. Only kinds of nodes
that are known count: any other might read the request or the person.
"""

from collections.abc import Callable, Iterable
from typing import Any

from django.template import Node, Variable
from django.template.base import FilterExpression, TextNode, VariableNode
from django.template.defaulttags import IfNode, LoadNode, TemplateLiteral, URLNode
from django.template.library import SimpleNode
from django.template.smartif import TokenBase
from django_cotton.templatetags._component import AttrKind, CottonComponentNode
from django_cotton.templatetags._slot import CottonSlotNode
from django_cotton.templatetags._vars import CottonVarsNode

from hekla.pages.frame import buttons, html
from hekla.pages.frame.translate_tag import ConstantBlock, ConstantNode

_FUNCTIONS = frozenset({html.address, html.badge, html.icon, html.logo, html.phase, buttons.button, buttons.menu_item})
"""Tags whose result depends on their arguments and the language only."""
_FILTERS = frozenset({"default", "space_after", "urlencode"})
_ALWAYS = frozenset({"True", "False", "None"})
Names = frozenset[str]
"""Variables that have the same values whenever a part is rendered."""
PlanOf = Callable[[CottonComponentNode], Any]
"""The template of a component and its defaults (`quick_components`), or None if it is left to Cotton."""


def is_constant(nodes: Iterable[Node], plan_of: PlanOf, names: Names = frozenset()) -> bool:
    """Whether the text of these nodes depends on nothing but the language and these variables."""
    known = names | _ALWAYS
    return all(rule(node, plan_of, known) if (rule := _RULES.get(type(node))) else False for node in nodes)


def _is_tag(node: Any, _plan_of: PlanOf, names: Names) -> bool:  # noqa: ANN401  (its attributes have no types)
    values = (*node.args, *node.kwargs.values())
    is_plain = not (node.takes_context or node.target_var) and node.func in _FUNCTIONS
    return is_plain and all(_is_value(value, names) for value in values)


def _is_address(node: Any, _plan_of: PlanOf, names: Names) -> bool:  # noqa: ANN401  (its attributes have no types)
    is_plain = not (node.kwargs or node.asvar)
    return is_plain and all(_is_value(one, names) for one in (node.view_name, *node.args))


def _is_choice(node: Any, plan_of: PlanOf, names: Names) -> bool:  # noqa: ANN401  (its attributes have no types)
    pairs = node.conditions_nodelists
    return all(_is_condition(one, names) and is_constant(nodes, plan_of, names) for one, nodes in pairs)


def _is_component(node: Any, plan_of: PlanOf, names: Names) -> bool:  # noqa: ANN401  (its attributes have no types)
    """Whether its attributes and its content are constant, and its template reads nothing else."""
    plan = plan_of(node)
    if plan is None or not is_constant(node.nodelist, plan_of, names):
        return False
    for _name, kind, _value, compiled in node._prepared_attrs:
        is_text = kind is AttrKind.ESCAPED and compiled is not None and is_constant(compiled.nodelist, plan_of, names)
        if not (is_text or kind is AttrKind.STATIC or kind is AttrKind.BOOLEAN):
            return False
    slots = {slot.slot_name for slot in node.nodelist.get_nodes_by_type(CottonSlotNode)}
    own = {"attrs", "slot", *plan.defaults, *slots, *(attribute.key for attribute in node._prepared_attrs)}
    return is_constant(plan.template.nodelist, plan_of, frozenset(own))


def _is_condition(condition: Any, names: Names) -> bool:  # noqa: ANN401  (any part of a condition, untyped)
    if condition is None:  # of `else`
        return True
    if isinstance(condition, TemplateLiteral):
        return _is_value(condition.value, names)
    parts = (condition.first, condition.second) if isinstance(condition, TokenBase) else (condition,)
    return isinstance(condition, TokenBase) and all(part is None or _is_condition(part, names) for part in parts)


def _is_value(value: Any, names: Names) -> bool:  # noqa: ANN401  (an expression, untyped)
    if not isinstance(value, FilterExpression):
        return False
    inside = [part for _function, parts in value.filters for is_looked_up, part in parts if is_looked_up]
    has_known_filters = all(getattr(one, "_filter_name", "") in _FILTERS for one, _parts in value.filters)
    return has_known_filters and all(_is_known(one, names) for one in (value.var, *inside))


def _is_known(variable: Any, names: Names) -> bool:  # noqa: ANN401  (a variable or a text)
    if not isinstance(variable, Variable) or variable.lookups is None:
        return True
    return variable.lookups[0] in names


_RULES: dict[type[Any], Callable[[Any, PlanOf, Names], bool]] = {
    **dict.fromkeys((TextNode, LoadNode, ConstantBlock, CottonVarsNode), lambda _node, _plan_of, _names: True),
    ConstantNode: lambda node, _plan_of, _names: not node.asvar,
    VariableNode: lambda node, _plan_of, names: _is_value(node.filter_expression, names),
    SimpleNode: _is_tag,
    URLNode: _is_address,
    IfNode: _is_choice,
    CottonSlotNode: lambda node, plan_of, names: is_constant(node.nodelist, plan_of, names),
    CottonComponentNode: _is_component,
}
