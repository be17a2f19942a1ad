"""Edits of a flow in its text: what changes, and which lines stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.formats import flow_edits
from hekla.domain.formats.flow_edits import FlowEdit, FlowEditKind

FLOW = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: nightly}
spec:
  flows:
    # the first
    - name: prepare  # quickly
    - name: train
      template: fit
      dependsOn:
        targets: [prepare]
        probe: {taskStatusList: [{taskName: main, phase: Running}]}
      patch:
        jobSpec:
          text: |
            a
            b
    # the last
    - name: report
      dependsOn: {targets: [train]}
# end
"""
ADD, RENAME, REMOVE = FlowEditKind.ADD, FlowEditKind.RENAME, FlowEditKind.REMOVE
CONNECT, DISCONNECT = FlowEditKind.CONNECT, FlowEditKind.DISCONNECT


def edited(text: str, edit: FlowEdit) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The text after the edit, and the dependencies of its steps."""
    found = flow_edits.apply(text, edit)
    flow = formats.load_flow(found).flow
    assert flow is not None
    return found, dict(flow.waits)


@pytest.mark.parametrize(
    ("edit", "waits"),
    [
        (FlowEdit(ADD, name="x", template="fit"),
         {"prepare": (), "train": ("prepare",), "report": ("train",), "x": ()}),
        (FlowEdit(ADD, name="x", template="fit", other="prepare"),
         {"prepare": (), "x": ("prepare",), "train": ("prepare",), "report": ("train",)}),
        (FlowEdit(ADD, name="x", template="fit", step="train"),
         {"prepare": (), "x": ("prepare",), "train": ("x",), "report": ("train",)}),
        (FlowEdit(RENAME, step="train", name="x"), {"prepare": (), "x": ("prepare",), "report": ("x",)}),
        (FlowEdit(REMOVE, step="train"), {"prepare": (), "report": ("prepare",)}),
        (FlowEdit(REMOVE, step="report"), {"prepare": (), "train": ("prepare",)}),
        (FlowEdit(CONNECT, step="report", other="prepare"),
         {"prepare": (), "train": ("prepare",), "report": ("train", "prepare")}),
        (FlowEdit(DISCONNECT, step="report", other="train"),
         {"prepare": (), "train": ("prepare",), "report": ()}),
    ],
)  # fmt: skip
def test_an_edit_changes_its_steps_and_keeps_other_lines(edit: FlowEdit, waits: dict[str, tuple[str, ...]]) -> None:
    text, found = edited(FLOW, edit)
    assert found == waits
    assert "    # the first\n    - name: prepare  # quickly\n" in text
    assert "    # the last\n" in text
    assert text.endswith("# end\n")


def test_a_renamed_step_has_the_same_job() -> None:
    text, _waits = edited(FLOW, FlowEdit(RENAME, step="prepare", name="begin"))
    flow = formats.load_flow(text).flow
    assert flow is not None
    assert [step.template_name for step in flow.steps] == ["prepare", "fit", "report"]


def test_a_step_without_dependencies_has_no_probes() -> None:
    text, _waits = edited(FLOW, FlowEdit(DISCONNECT, step="train", other="prepare"))
    assert "probe" not in text


def test_a_new_step_can_have_a_new_job_in_the_text() -> None:
    text, _waits = edited(FLOW, FlowEdit(ADD, name="x"))
    loaded = formats.load_flow(text)
    assert loaded.flow is not None
    assert [template.name for template in loaded.templates] == ["nightly-x"]
    assert loaded.flow.steps[-1].template_name == "nightly-x"


def test_a_removed_step_can_be_added_again() -> None:
    text = FLOW
    for edit in (FlowEdit(ADD, name="x"), FlowEdit(REMOVE, step="x"), FlowEdit(ADD, name="x")):
        text = flow_edits.apply(text, edit)
    assert [template.name for template in formats.load_flow(text).templates] == ["nightly-x"]


@pytest.mark.parametrize(
    "status",
    ["[&x " + "a" * 1000 + ", *x" * 1000 + "]", "[&x [" + "1, " * 100 + "]" + ", *x" * 200 + "]", "0x" + "f" * 5000],
)
def test_a_text_that_becomes_huge_is_refused(status: str) -> None:
    text = FLOW.partition("spec:")[0] + f"status: {status}\nspec: {{flows: [{{name: a}}, {{name: b}}]}}\n"
    with pytest.raises(Invalid):
        flow_edits.apply(text, FlowEdit(CONNECT, step="b", other="a"))


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (FlowEdit(CONNECT, step="prepare", other="report"), "in a circle: prepare → train → report → prepare."),
        (FlowEdit(CONNECT, step="train", other="train"), "in a circle: train → train."),
        (FlowEdit(ADD, name="train", template="fit"), "Another step has the name “train”."),
        (FlowEdit(RENAME, step="train", name="Train it"), "Use lowercase letters"),
        (FlowEdit(ADD, name="Train it"), "Use lowercase letters"),
        (FlowEdit(ADD, name="", template="fit"), "Must not be empty."),
        (FlowEdit(REMOVE, step="evaluate"), "The flow has no step “evaluate”."),
    ],
)
def test_a_refused_edit_says_why(edit: FlowEdit, sentence: str) -> None:
    with pytest.raises(Invalid) as caught:
        flow_edits.apply(FLOW, edit)
    assert sentence in " ".join(problem.message for problem in caught.value.problems)


def test_the_last_step_stays() -> None:
    text = flow_edits.apply(flow_edits.apply(FLOW, FlowEdit(REMOVE, step="train")), FlowEdit(REMOVE, step="report"))
    with pytest.raises(Invalid):
        flow_edits.apply(text, FlowEdit(REMOVE, step="prepare"))


SHAPES = {
    "json": '{"apiVersion":"flow.volcano.sh/v1alpha1","kind":"JobFlow","metadata":{"name":"n"},'
    '"spec":{"flows":[{"name":"a"},{"name":"b"}]}}',
    "flow style": FLOW.partition("spec:")[0] + "spec: {flows: [{name: a}, {name: b}]}\n",
    "anchors": FLOW.partition("spec:")[0] + "spec:\n  flows:\n  - &one\n    name: a\n  - {<<: *one, name: b}\n",
    "no end of line": FLOW.partition("spec:")[0] + "spec:\n  flows:\n  - name: a\n  - name: b",
    "windows": (FLOW.partition("spec:")[0] + "spec:\n  flows:\n  - name: a\n  - name: b\n").replace("\n", "\r\n"),
    "other documents": "---\n# none\n---\n"
    + FLOW.partition("spec:")[0]
    + "spec:\n  flows:\n  - name: a\n  - name: b\n...\n",
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_texts_of_other_shapes_are_edited(text: str) -> None:
    assert edited(text, FlowEdit(CONNECT, step="b", other="a"))[1] == {"a": (), "b": ("a",)}


_NAMES = st.sampled_from(["a", "b", "c", "d"])
_EDITS = st.builds(FlowEdit, st.sampled_from(FlowEditKind), _NAMES | st.just(""), _NAMES | st.just(""), _NAMES, _NAMES)


@given(st.lists(_EDITS, max_size=6))
@settings(max_examples=40, deadline=None)
def test_any_edits_leave_a_flow_that_can_be_read(edits: list[FlowEdit]) -> None:
    text = SHAPES["no end of line"]
    for edit in edits:
        try:
            text = flow_edits.apply(text, edit)
        except Invalid:
            continue
        assert formats.load_flow(text).flow is not None
