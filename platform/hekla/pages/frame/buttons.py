"""Buttons, entries of menus, and forms of one button, built in Python for their components: pages have dozens of them.

`slot` and `attrs` come from the template and are markup; everything else is escaped unless it is markup.
"""

from django.template import Context
from django.utils.safestring import SafeString

from hekla.pages.frame import html
from hekla.pages.frame.html import text


def button(
    slot: str, attrs: object, *, kind: str, icon: str, href: str, submit: str, small: object, label: str
) -> SafeString:
    """A button, or a link that looks like one. See `components/button.html`; `submit`: the type of the button."""
    look = f"button button-{text(kind)}{' button-small' if small else ''}"
    words = f' aria-label="{text(label)}" title="{text(label)}"' if label else ""
    content = (html.icon(icon) if icon else "") + (f"<span>{text(slot)}</span>" if slot else "")
    if href:
        return SafeString(f'<a class="{look}" href="{text(href)}"{words} {attrs}>{content}</a>')
    return SafeString(f'<button class="{look}" type="{text(submit)}"{words} {attrs}>{content}</button>')


def menu_item(slot: str, attrs: object, *, href: str, icon: str, danger: object) -> SafeString:
    """An entry of a menu. See `components/menu_item.html`."""
    look = f"menu-item{' menu-danger' if danger else ''}"
    content = f"{html.icon(icon) if icon else ''}{text(slot)}"
    if href:
        return SafeString(f'<a class="{look}" href="{text(href)}" {attrs}>{content}</a>')
    return SafeString(f'<button class="{look}" {attrs}>{content}</button>')


def post_button(context: Context) -> SafeString:
    """A form of one button, from the variables of its component. See `components/post.html`."""
    slot, action, kind, icon, small, label, item, fields = (context[name] for name in _FORM)
    token = text(context.get("csrf_token") or "")
    hidden = f'<input type="hidden" name="csrfmiddlewaretoken" value="{token}">' if token else ""
    sends = (
        menu_item(slot, "", href="", icon=icon, danger=kind == "danger")
        if item
        else button(slot, "", kind=kind, icon=icon, href="", submit="submit", small=small, label=label)
    )
    asks = "".join(f' data-{name.replace("_", "-")}="{text(context[name])}"' for name in _QUESTION)
    form = f'<form class="inline" method="post" action="{text(action)}"{asks if context["confirm"] else ""}>'
    return SafeString(f"{form}{hidden}{text(fields)}{sends}</form>")


_FORM = ("slot", "action", "kind", "icon", "small", "label", "item", "fields")
_QUESTION = ("confirm", "confirm_title", "confirm_do", "confirm_name")
