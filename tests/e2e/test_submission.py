"""The submission form in a real browser: YAML, presets, the gallery, frameworks, uploads and sweeps."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.support.examples import EVERY

from hekla.domain import formats
from hekla.domain.flows import FlowSpec

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_job_survives_the_switch_to_yaml_and_back_and_runs(page: Page) -> None:
    page.goto("/jobs/submit/")
    page.get_by_label("Name", exact=True).fill("there-and-back")
    page.get_by_label("Command").fill("sh -c 'echo one\necho two'")
    page.get_by_role("button", name="YAML", exact=True).click()
    text = page.locator("textarea#id_text")  # its editor follows it
    expect(text).to_have_value(re.compile("there-and-back"))
    text.fill(text.input_value().replace("spec:\n", "spec:\n  minSuccess: 1\n", 1))
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_label("Command")).to_have_value("sh -c 'echo one\necho two'")
    expect(page.get_by_label("About this job")).to_contain_text("minimum successes")
    page.get_by_label("Name", exact=True).press("Enter")
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)


def test_mistakes_appear_when_a_field_is_left_and_submit_is_always_in_sight(page: Page) -> None:
    page.goto("/jobs/submit/")
    submit = page.get_by_role("button", name="Submit", exact=True)
    expect(submit).to_be_in_viewport(ratio=1)
    memory, name = page.get_by_label("Memory"), page.get_by_label("Name", exact=True)
    name.fill("My job")
    memory.fill("8")
    memory.blur()
    expect(page.locator("#id_tasks-0-memory_error")).to_contain_text("For 8 GiB enter 8Gi")
    expect(page.locator("#id_name_error")).to_contain_text("Use lowercase letters")
    expect(page.locator("#id_tasks-0-command_error")).to_be_empty()  # not filled in yet
    memory.fill("8 GB")
    memory.blur()
    expect(page.locator("#id_tasks-0-memory_error")).to_be_empty()
    page.get_by_label("Command").fill("true")
    submit.click()
    expect(page.get_by_role("alert")).to_contain_text("Use lowercase letters")
    expect(submit).to_be_in_viewport(ratio=1)
    expect(memory).to_have_value("8 GB")


FORMS = [*(f"/jobs/submit/?preset={kind}" for kind in ("single", "distributed", "debugging", "mpi")), "/batches/new/"]


@pytest.mark.parametrize("path", FORMS[::EVERY])
def test_controls_of_a_row_are_aligned(page: Page, path: str) -> None:
    page.goto(path)
    for width in (320, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for row in page.locator(".fields-row:visible").all():
            boxes = [control.bounding_box() for control in row.locator(".control:visible").all()]
            lines = {round(box["y"]) for box in boxes}
            columns = {round(box["x"]) for box in boxes}
            assert len(lines) * len(columns) < len(boxes) + len(columns), (width, boxes)


def save_as_preset(page: Page, name: str) -> None:
    page.get_by_text("Save as template").click()
    page.locator("#id_preset-name").fill(name)
    page.get_by_role("button", name="Save", exact=True).click()


def test_preset_is_saved_and_becomes_the_default(page: Page) -> None:
    page.goto("/jobs/submit/?preset=single")
    page.get_by_label("Command").fill("echo kept")
    save_as_preset(page, "my echo")
    page.wait_for_url(re.compile("saved="))
    expect(page.get_by_label("Command")).to_have_value("echo kept")
    page.get_by_role("link", name="Manage").click()
    preset = page.locator("tr, li").filter(has_text="my echo")
    preset.get_by_role("button", name="Make default").click()
    page.goto("/jobs/submit/")
    expect(page.get_by_label("Command")).to_have_value("echo kept")
    page.goto("/jobs/presets/")
    page.get_by_role("button", name="Delete my echo").click()
    page.locator("dialog[open]").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted template")).to_be_visible()


def test_preset_is_published_and_submitted_from_the_gallery(page: Page) -> None:
    page.goto("/jobs/submit/?preset=single")
    save_as_preset(page, "to publish")
    page.goto("/jobs/presets/")
    page.get_by_role("link", name="Publish in the gallery").first.click()
    page.get_by_label("Title").fill("One command")
    page.get_by_label("main · Command").check()
    page.get_by_role("button", name="Publish").click()
    page.goto("/gallery/")
    page.get_by_role("link", name="Create job from One command").click()
    page.get_by_label("main · Command").fill("echo from the gallery")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("#job-head")).to_contain_text("Template One command, version 1")
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)


def test_framework_is_applied_and_undone_with_the_keyboard(page: Page) -> None:
    page.goto("/jobs/submit/?preset=distributed")
    page.get_by_label("Name", exact=True).fill("by-keyboard")
    page.get_by_label("Command").fill("echo mine")
    page.get_by_role("button", name="PyTorch: master and workers").press("Enter")
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="Filled in from")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("by-keyboard")
    expect(page.get_by_label("Command").first).to_have_value("python train.py")
    undo.press("Enter")
    expect(page.get_by_label("Command")).to_have_value("echo mine")


def test_preset_is_applied_and_the_draft_is_restored_after_a_visit_to_the_gallery(page: Page) -> None:
    page.goto("/jobs/submit/?preset=distributed")
    page.get_by_label("Command").fill("echo several")
    save_as_preset(page, "of several")
    page.wait_for_url(re.compile("saved="))
    page.goto("/jobs/submit/?preset=single")
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_role("button", name="of several").press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    expect(page.get_by_label("Command")).to_have_value("echo several")
    page.get_by_role("link", name="Gallery").click()
    page.wait_for_url(re.compile("/gallery/"))
    page.get_by_role("button", name="Restore draft").press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_have_value("by-hand")
    expect(page.get_by_label("Command")).to_have_value("echo several")
    expect(page.locator("#id_tasks-0-replicas")).to_have_value("2")


def test_uploaded_manifest_fills_the_form_and_an_invalid_one_does_not(page: Page, tmp_path: Path) -> None:
    valid, invalid = tmp_path / "job.yaml", tmp_path / "bad.yaml"
    valid.write_text("name: uploaded\ntasks: [{name: main, command: [echo, up]}]")
    invalid.write_text("a: [")
    page.goto("/jobs/submit/?preset=single")
    page.get_by_label("Command").fill("echo mine")
    for file, command in ((invalid, "echo mine"), (valid, "echo up")):
        if not page.get_by_label("Manifest file").is_visible():
            page.get_by_text("Upload a manifest").press("Enter")
        page.get_by_label("Manifest file").set_input_files(file)
        page.get_by_role("button", name="Fill in form", exact=True).press("Enter")
        expect(page.get_by_label("Command")).to_have_value(command)
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_label("Command")).to_have_value("echo mine")


def test_job_becomes_a_sweep_with_the_keyboard_and_keeps_its_fields(page: Page) -> None:
    page.goto("/jobs/submit/?preset=single")
    page.get_by_label("Name", exact=True).fill("by-keyboard")
    page.get_by_label("Command").fill("echo rate {{ lr }}")
    page.get_by_role("button", name="Parameter sweep").press("Enter")
    mode = page.get_by_role("button", name="Parameter sweep")
    expect(mode).to_be_focused()
    expect(mode).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Command")).to_have_value("echo rate {{ lr }}")
    page.get_by_role("textbox", name="Parameters").fill("lr = 0.1, 0.01, 0.001")
    expect(page.locator("#what-if")).to_contain_text("3 jobs", timeout=10_000)
    page.get_by_role("button", name="Submit all").click()
    page.wait_for_url(re.compile("/batches/[0-9a-f-]{36}/"))
    expect(page.locator("main")).to_contain_text("by-keyboard-3")


def test_code_is_added_from_files_and_a_folder(page: Page, tmp_path: Path) -> None:
    page.goto("/jobs/submit/?preset=single")
    for name, content in (
        ("train.py", b"print('mine')\n"),
        ("src/model.py", b"x = 1\n"),
        (".git/config", b"no"),
        ("data.bin", b"\xff\0"),
    ):
        (tmp_path / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "code" / name).write_bytes(content)
    page.locator("summary", has_text="Code and files").click()
    page.get_by_label("Add a folder").set_input_files(tmp_path / "code")
    expect(page.locator("#toasts")).to_contain_text("Not added, because they are not text: data.bin")
    expect(page.locator("#toasts")).to_contain_text("Added to the files: 2")
    page.get_by_label("Command").fill("cat src/model.py train.py")
    page.get_by_label("Name", exact=True).first.fill("with-code")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)


def test_flow_is_edited_in_its_drawing_by_keyboard_and_pointer(page: Page) -> None:
    page.goto("/flows/start/")
    words, text = page.locator("#flow-draft-words"), page.locator("textarea#id_text")
    job = {"tasks": [{"name": "main", "command": ["true"], "resources": {"cpu": "100m"}}]}
    steps = [{"name": "prepare", "job": job}, {"name": "train", "job": job, "depends_on": ["prepare"]}]
    typed = formats.dump_flow(FlowSpec.parse({"name": "drawn", "steps": steps}))
    text.fill(typed)
    expect(words).to_contain_text("train waits for prepare.")
    page.locator("#flow-add-name").fill("report")
    page.locator("#flow-add-name").press("Enter")
    expect(words).to_have_text("Added step report.")
    expect(page.locator("#flow-add-name")).to_be_focused()
    expect(text).to_have_value(re.compile(r"name: report\n"))
    page.locator("#flow-add-name").fill("half")
    page.get_by_label("Let prepare wait for").fill("report")
    page.keyboard.press("Enter")
    expect(words).to_contain_text("in a circle: prepare → train → report → prepare.")
    page.get_by_label("Name of step train").fill("fit")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name of step fit")).to_be_focused()
    boxes = {name: page.locator(f".dag-wide [data-step={name}]") for name in ("prepare", "report")}
    boxes["prepare"].drag_to(boxes["report"])
    expect(words).to_have_text("report now waits for prepare.")
    page.get_by_label("Disconnect report from fit").first.focus()
    page.keyboard.press("Enter")
    expect(words).to_have_text("report no longer waits for fit.")
    expect(page.locator("#flow-add-name")).to_have_value("half")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Disconnect report from fit")).to_be_visible()


def test_editor_offers_fields_and_shows_every_problem_at_its_line(page: Page) -> None:
    page.goto("/jobs/submit/yaml/")
    editor = page.get_by_role("textbox", name="Manifest")
    editor.focus()
    page.keyboard.press("Tab")  # whoever passes by goes on
    expect(editor).not_to_be_focused()
    editor.focus()
    page.keyboard.type("name: edited\ntasks:\n- name: main\nrepl")
    page.get_by_role("option", name="replicas").click()
    page.keyboard.type("two\nfoo: 1")
    problems = page.locator("#id_text_error button")
    expect(problems.filter(has_text="Line 4: Must be an integer, not “two”.")).to_be_visible()
    problems.filter(has_text="Line 5: Unknown field “foo”").click()
    expect(editor).to_be_focused()
    expect(page.locator(".cm-activeLine")).to_have_text("  foo: 1")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(3)  # and no command
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()
    page.locator("#id_text").fill("name: edited\ntasks: [{name: main, command: [echo, hi]}]")
    expect(page.locator(".cm-line")).to_have_count(2)
    expect(problems).to_have_count(0)
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
