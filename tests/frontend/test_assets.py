"""Consistency of static files and templates, read from the files."""

import colorsys
import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "static"
TEMPLATES = ROOT / "templates"
COMPONENTS = TEMPLATES / "components"

TOKENS = (STATIC / "css" / "variables.css").read_text()
CSS = {path.name: path.read_text() for path in sorted((STATIC / "css").glob("*.css"))}
SCRIPTS = {path.name: path.read_text() for path in sorted((STATIC / "js").glob("*.js"))}
PAGES = {str(path.relative_to(TEMPLATES)): path.read_text() for path in sorted(TEMPLATES.rglob("*.html"))}
ICONS = set(re.findall(r'id="([\w-]+)"', (STATIC / "img" / "icons.svg").read_text()))

COLOURS = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", TOKENS)
}
STATES = ("waiting", "admitted", "running", "done", "failed", "stopped", "borrowed")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def mix_colours(colour: str, share: float, background: str) -> str:
    """The CSS function color-mix(in srgb, colour share, background)."""
    pairs = [(int(colour[at : at + 2], 16), int(background[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(one * share + other * (1 - share)):02x}" for one, other in pairs)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["text", "muted", "accent", "brand", *STATES])
def test_text_is_readable_on_every_surface(name, theme):
    colour = COLOURS[name][theme]
    for surface in ("background", "surface", "sunken", "raised"):
        assert contrast(colour, COLOURS[surface][theme]) >= 4.5, surface


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_badge_is_readable_on_its_own_tint(state, theme):
    colour = COLOURS[state][theme]
    assert contrast(colour, mix_colours(colour, 0.06, COLOURS["surface"][theme])) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_controls_have_enough_contrast(theme):
    for name in ("accent", "brand"):
        assert contrast(COLOURS[f"on-{name}"][theme], COLOURS[name][theme]) >= 4.5
    assert contrast(COLOURS["line-strong"][theme], COLOURS["surface"][theme]) >= 3


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_brand_is_far_from_the_red_of_a_failure_and_for_the_primary_action_only(theme):
    brand, failed = (
        colorsys.rgb_to_hsv(*(int(COLOURS[name][theme][at : at + 2], 16) / 255 for at in (1, 3, 5)))[0]
        for name in ("brand", "failed")
    )
    apart = abs(brand - failed)
    assert min(apart, 1 - apart) * 360 >= 25
    users = {line.split("{")[0].strip() for css in CSS.values() for line in css.splitlines() if "var(--brand" in line}
    assert users == {".button-primary", ".button-primary:is(:hover, :active)", ".swatch-brand"}


def test_styles_use_tokens_that_exist():
    known = set(re.findall(r"(--[\w-]+):", "".join(CSS.values())))
    for name, sheet in CSS.items():
        assert set(re.findall(r"var\((--[\w-]+)", sheet)) <= known, name


def test_every_style_sheet_is_loaded():
    imported = re.findall(r'@import "(\w+\.css)";', CSS["console.css"])
    others = re.findall(r"css/(\w+\.css)", "".join(PAGES.values()))
    assert len(imported) == len(set(imported))
    assert {*imported, *others, "console.css"} == set(CSS)


@pytest.mark.parametrize(
    "forbidden",
    [r"\sstyle\s*=", r"<style\b", r"\son\w+\s*=\s*[\"']", r"\shx-on\b"],
    ids=["style attribute", "style element", "event handler", "htmx handler"],
)
def test_templates_comply_with_the_content_security_policy(forbidden):
    assert [name for name, page in PAGES.items() if re.search(forbidden, without_comments(page))] == []


def test_templates_have_no_inline_scripts():
    for name, page in PAGES.items():
        inline = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", without_comments(page))
        assert all('type="application/json"' in attributes for attributes in inline), name


def without_comments(page: str) -> str:
    return re.sub(r"{% comment %}.*?{% endcomment %}", "", page, flags=re.S)


def test_template_comments_are_not_rendered():
    """A comment of several lines needs {% comment %}."""
    assert [name for name, page in PAGES.items() if re.search(r"{#(?:(?!#}).)*\n", page)] == []


def test_icons_exist():
    for name, page in PAGES.items():
        used = set(re.findall(r'(?:<c-icon name|\bicon)="([\w-]+)"', page))
        assert used <= ICONS, name


def test_every_phase_has_an_icon_a_colour_and_a_label():
    from hekla.apps.event_log.phases import _PHASES as labels
    from hekla.domain.phases import GangPhase, JobPhase, PodPhase

    coloured = set(re.findall(r"\.phase-(\w+)", CSS["badge.css"]))
    phases = {str(phase) for kind in (JobPhase, GangPhase, PodPhase) for phase in kind}
    assert phases <= labels.keys()
    assert labels.keys() <= coloured
    assert {f"phase-{word}" for word in labels} <= ICONS


def declared_attributes(component: str) -> set[str]:
    """The attributes that a component lists in its c-vars."""
    found = re.search(r"<c-vars ([^>]*?)/>", (COMPONENTS / f"{component}.html").read_text())
    return set(re.findall(r"([\w-]+)(?:=\"[^\"]*\")?", found[1])) if found else set()


def test_components_exist_and_raw_values_are_declared():
    for name, page in PAGES.items():
        for tag, attributes in re.findall(r"<c-([\w-]+)((?:\s+[:\w-]+(?:=\"[^\"]*\")?)*)", page):
            if tag in ("vars", "slot"):
                continue
            component = tag.replace("-", "_")
            assert (COMPONENTS / f"{component}.html").exists(), f"{name}: {tag}"
            for attribute in re.findall(r"\s:([\w-]+)=", attributes):
                found = f"{name}: c-{tag} would print :{attribute} unescaped"
                assert attribute in declared_attributes(component), found


def test_scripts_are_small_and_imports_exist():
    for name, script in SCRIPTS.items():
        assert len(script.splitlines()) < 200, name
        for names, other in re.findall(r"import \{?([^}]*?)\}? from \"\./(\w+\.js)\"", script):
            assert other in SCRIPTS, name
            for wanted in names.replace("* as connection", "").split(","):
                exported = rf"export (?:async )?(?:function|class|const) {wanted.strip()}\b"
                assert re.search(exported, SCRIPTS[other]), f"{name}: {wanted}"


def test_scripts_do_not_create_markup_from_text():
    writers = {
        name for name, script in SCRIPTS.items() if re.search(r"innerHTML|insertAdjacentHTML|outerHTML\s*=", script)
    }
    assert writers == {"morph.js", "rows.js"}, "the server's own renderings only"


def test_scripts_use_exactly_the_messages_of_the_page():
    declared = set(re.findall(r'^ +"(\w+)":', PAGES["_messages.html"], flags=re.M))
    used = set(re.findall(r"say\((?:\w+ \? )?\"(\w+)\"", "".join(SCRIPTS.values())))
    selected = set(re.findall(r'"(log_\w+|following)"', SCRIPTS["log_view.js"]))
    assert used | selected == declared


def test_vendored_files_are_listed_with_their_hashes():
    licences = (STATIC / "vendor" / "LICENSES.md").read_text()
    listed = dict(re.findall(r"\| `([\w.-]+)` \|.*`(\w{64})`", licences))
    vendored = [*(STATIC / "vendor").glob("*.[jc]s*"), *(STATIC / "fonts").iterdir()]
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in vendored}
    assert listed == files
