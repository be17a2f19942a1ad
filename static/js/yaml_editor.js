// <textarea data-yaml-editor="address of CodeMirror" data-nonce data-hint>: an editor in its place. The text area stays what
// the form sends, and drafts and previews read it. The server checks the text (`do=check`): it says every problem with its
// line, and by place the fields that may be there. So the editor knows no kind of manifest itself.

import { mountEditor } from "./code_editor.js";
import { say } from "./messages.js";
import { loadScript } from "./script.js";
import { placeOf } from "./yaml_places.js";

const CHECK_AFTER_MS = 500;
const KEY = /^(\s*(?:-\s+)*)([\w./-]*)$/;
const VALUE = /^\s*(?:-\s+)*"?([\w./-]+)"?:\s+(?:\[\s*|.*,\s*)?([\w.*/-]*)$/;

/** Any item of a list has the fields of every other. */
function ofAnyItem(path) {
  return path.replace(/\[\d+\]/g, "[]");
}

function completions(known) {
  return async (context) => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const value = VALUE.exec(before);
    if (value) {
      const options = (known.values[value[1]] ?? []).map((label) => ({ label, type: "enum" }));
      return options.length ? { from: context.pos - value[2].length, options } : null;
    }
    const key = KEY.exec(before);
    if (!key || (!key[2] && !context.explicit)) return null;
    const lines = context.state.doc.toString().split("\n").slice(0, line.number);
    const place = ofAnyItem(placeOf(lines, key[1].length));
    if (!known.fields.has(place)) await known.refresh(); // typed since the last check
    const names = known.fields.get(place) ?? [];
    const options = names.map((label) => ({ label, type: "property", apply: line.text.slice(before.length).startsWith(":") ? label : `${label}: ` }));
    return options.length ? { from: context.pos - key[2].length, options, validFor: /^[\w./-]*$/ } : null;
  };
}

function extensions(CM, known, changed) {
  const problems = [{ key: "F8", run: CM.nextDiagnostic, shift: CM.previousDiagnostic, preventDefault: true }];
  return [
    CM.EditorState.phrases.of({ Completions: say("yaml_completions") }),
    CM.EditorState.tabSize.of(2),
    CM.indentUnit.of("  "),
    CM.lintGutter(),
    CM.yaml(),
    CM.closeBrackets(),
    CM.autocompletion({ override: [completions(known)], icons: false }),
    CM.keymap.of([...CM.closeBracketsKeymap, ...CM.completionKeymap, ...problems]),
    CM.EditorView.updateListener.of((update) => update.docChanged && changed()),
  ];
}

function goTo(view, number) {
  const line = view.state.doc.line(Math.min(number, view.state.doc.lines));
  view.dispatch({ selection: { anchor: line.from + line.text.search(/\S|$/) }, scrollIntoView: true });
  view.focus();
}

function showProblems(CM, view, area, problems) {
  const diagnostics = problems.map(({ line, message, severity }) => {
    const place = view.state.doc.line(Math.min(line, view.state.doc.lines));
    return { from: place.from + place.text.search(/\S|$/), to: place.to, severity, message };
  });
  view.dispatch(CM.setDiagnostics(view.state, diagnostics.sort((one, other) => one.from - other.from)));
  const field = area.closest(".field");
  field.classList.toggle("field-wrong", problems.some(({ severity }) => severity === "error"));
  field.querySelector(".problems").replaceChildren(
    ...problems.map(({ line, words, severity }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = `${severity === "error" ? "problem" : "help"} problem-line`;
      button.textContent = words;
      button.addEventListener("click", () => goTo(view, line));
      return button;
    }),
  );
}

async function check(area, signal) {
  const body = new FormData(area.form);
  for (const [name, value] of [...body]) if (value instanceof File) body.delete(name);
  body.set("do", "check");
  body.delete("before");
  const response = await fetch(area.form.action, { method: "POST", body, signal, headers: { Accept: "application/json" } });
  return response.ok && !response.redirected ? response.json() : null;
}

function checker(CM, view, area, known) {
  let timer;
  let request;
  const run = async () => {
    request?.abort();
    request = new AbortController();
    try {
      const found = await check(area, request.signal);
      if (!found) return;
      if (Object.keys(found.fields).length) known.fields = new Map(Object.entries(found.fields)); // a half-typed text keeps the last ones
      known.values = found.values;
      showProblems(CM, view, area, found.problems);
    } catch {
      // Offline, or a newer check is on its way. Submitting checks everything again.
    }
  };
  run();
  known.refresh = run;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, CHECK_AFTER_MS);
  };
}

function start(area) {
  const CM = window.CodeMirror;
  const known = { fields: new Map(), values: {} };
  let later = () => {};
  const view = mountEditor(CM, area, extensions(CM, known, () => later()));
  later = checker(CM, view, area, known);
}

export function startYamlEditors() {
  for (const area of document.querySelectorAll("textarea[data-yaml-editor]"))
    loadScript(area.dataset.yamlEditor).then(
      () => start(area),
      () => {}, // without the editor, the text area works
    );
}
