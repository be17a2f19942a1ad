"""Resolves the variables of templates in fewer steps than Django does, with the same results.

A page has several hundred variables and conditions, and a missing variable alone costs Django four exceptions. Whatever
is unusual is left to Django: filters, translated texts, and names that are neither keys nor attributes.
"""

from html import escape
from typing import Any

from django.conf import settings
from django.template.base import (
    FilterExpression,
    NodeList,
    Variable,
    VariableDoesNotExist,
    VariableNode,
    render_value_in_context,
)
from django.template.context import BaseContext
from django.utils.safestring import SafeString

_NO_SUCH_KEY = (TypeError, AttributeError, KeyError, ValueError, IndexError)
_ABSENT: Any = object()
_UNUSUAL: Any = object()
_django_resolves: Any = Variable.resolve
_django_filters: Any = FilterExpression.resolve
_django_joins: Any = NodeList.render
_django_prints: Any = VariableNode.render


def _found(lookups: tuple[str, ...], context: Any) -> Any:  # noqa: ANN401  (any value of any context)
    """The value with these names. `_ABSENT`: no scope has the first; `_UNUSUAL`: Django has to look."""
    name = lookups[0]
    for scope in reversed(context.dicts):
        if name in scope:
            value = scope[name]
            break
    else:
        return _ABSENT
    try:
        if callable(value):
            value = _called(value, context)
        for name in lookups[1:]:
            value = _part(value, name)
            if callable(value):
                value = _called(value, context)
    except _NO_SUCH_KEY:
        return _UNUSUAL
    except Exception as error:
        if getattr(error, "silent_variable_failure", False):
            return context.template.engine.string_if_invalid
        raise
    return value


def _part(value: Any, name: str) -> Any:  # noqa: ANN401  (any value)
    """The value of this key, else of this attribute."""
    if not hasattr(type(value), "__getitem__"):
        return getattr(value, name)
    try:
        return value[name]
    except _NO_SUCH_KEY:
        return getattr(value, name)


def _called(value: Any, context: Any) -> Any:  # noqa: ANN401  (any value)
    """The result of a function without arguments. As in Django, some are not called."""
    if getattr(value, "do_not_call_in_templates", False):
        return value
    return context.template.engine.string_if_invalid if getattr(value, "alters_data", False) else value()


def _variable(variable: Variable, context: Any) -> Any:  # noqa: ANN401  (of a context, or of any mapping)
    if variable.lookups is None or variable.translate or not isinstance(context, BaseContext):
        return _django_resolves(variable, context)
    value = _found(variable.lookups, context)
    if value is _UNUSUAL:
        return _django_resolves(variable, context)
    if value is _ABSENT:
        raise VariableDoesNotExist("Failed lookup for key [%s] in %r", (variable.lookups[0], context))
    return value


def _expression(expression: FilterExpression, context: Any, ignore_failures: bool = False) -> Any:  # noqa: ANN401
    variable: Any = expression.var
    if not expression.filters:
        if not expression.is_var:
            return variable
        if variable.lookups is not None and not variable.translate and isinstance(context, BaseContext):
            value = _found(variable.lookups, context)
            if value is _ABSENT and ignore_failures:
                return None
            if value is not _ABSENT and value is not _UNUSUAL:
                return value
    return _django_filters(expression, context, ignore_failures)


def _variable_node(node: VariableNode, context: Any) -> str:  # noqa: ANN401  (any context)
    try:
        value = node.filter_expression.resolve(context)
    except UnicodeDecodeError:
        return ""
    kind = type(value)
    if kind is SafeString:
        return value  # type: ignore[no-any-return]
    if kind is str:
        return escape(value) if context.autoescape else value
    if kind is int and not settings.USE_THOUSAND_SEPARATOR:
        return str(value)
    return render_value_in_context(value, context)


def _joined(nodes: NodeList, context: Any) -> SafeString:  # noqa: ANN401  (any context)
    """The nodes as text. Only with DEBUG is it worth a step for each to note in which one an exception occurs."""
    template = context.template
    if template is None or template.engine.debug:
        return _django_joins(nodes, context)  # type: ignore[no-any-return]
    return SafeString("".join([node.render(context) for node in nodes]))


def replace_steps() -> None:
    """Let all templates resolve and print their variables so."""
    Variable.resolve = _variable  # type: ignore[method-assign, assignment]
    FilterExpression.resolve = _expression  # type: ignore[method-assign, assignment]
    VariableNode.render = _variable_node  # type: ignore[method-assign, assignment]
    NodeList.render = _joined  # type: ignore[method-assign, assignment]
