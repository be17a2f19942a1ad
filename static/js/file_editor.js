// <form data-file-form> with <textarea data-file-editor="address of CodeMirror" data-language>: edits a file of a job. Saving
// stays on the page, so the place of the cursor and what can be undone stay too. If the server refuses, the form is sent: the
// answer is a page that says why and has the text. Without a network, the draft of the form (form.js) has the text.

import { mountEditor } from "./code_editor.js";
import { dropDraftOf } from "./form.js";
import { say } from "./messages.js";
import { loadScript } from "./script.js";

const HAS_TABS = /^\t/m;
const INDENTS = { yaml: "  " };
const CONFLICT = 409;

function language(CM, name) {
  const found = { yaml: CM.yaml, python: CM.python, shell: CM.shell }[name];
  return found ? [found()] : [];
}

function mount(area) {
  const CM = window.CodeMirror;
  const indent = HAS_TABS.test(area.value) ? "\t" : (INDENTS[area.dataset.language] ?? "    ");
  mountEditor(CM, area, [CM.highlightSpecialChars(), CM.indentUnit.of(indent), ...language(CM, area.dataset.language)]);
}

/** The SHA-256 of the file after saving; empty if the server refused, which the page of its answer explains. */
async function send(form) {
  const body = new FormData(form);
  body.set("do", "save");
  const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
  if (answer.redirected) throw new Error(say("terminal_signed_out"));
  if (answer.status >= 500 || answer.status === 429) throw new Error(say("file_not_saved"));
  // Any other refusal, of a right that was lost or a job that was deleted, is a page without the text.
  if (!answer.ok && answer.status !== CONFLICT) throw new Error(say("file_refused", { status: answer.status }));
  return answer.ok ? (await answer.json()).sha256 : "";
}

function savingOf(form) {
  const state = form.querySelector("[data-file-state]");
  const button = form.querySelector("[data-file-save]");
  let isSaving = false;
  return async () => {
    if (isSaving || !form.reportValidity()) return;
    isSaving = true;
    const text = form.elements.text.value;
    state.textContent = say("file_saving");
    try {
      const digest = await send(form);
      if (!digest) return void form.requestSubmit(button);
      form.elements.base.value = digest;
      if (form.elements.text.value === text) dropDraftOf(form);
      else form.elements.text.dispatchEvent(new Event("input", { bubbles: true })); // its draft knows the new file
      state.textContent = say("file_saved", { time: new Date().toLocaleTimeString(document.documentElement.lang) });
    } catch (error) {
      state.textContent = error instanceof TypeError ? say("file_not_saved") : error.message;
    } finally {
      isSaving = false;
    }
  };
}

function start(form) {
  const save = savingOf(form);
  form.querySelector("[data-file-save]").addEventListener("click", (event) => {
    event.preventDefault();
    save();
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    save();
  });
  form.querySelector("[data-file-discard]")?.addEventListener("click", () => dropDraftOf(form));
  const address = new URL(location.href);
  if (address.searchParams.has("saved")) { // after a reload, the draft counts again
    address.searchParams.delete("saved");
    history.replaceState(history.state, "", address);
    dropDraftOf(form); // or it would come back as an earlier input when somebody has changed the file
  }
  const area = form.querySelector("[data-file-editor]");
  loadScript(area.dataset.fileEditor).then(
    () => mount(area),
    () => {}, // without the editor, the text area works
  );
}

export function startFileEditor() {
  document.querySelectorAll("form[data-file-form]").forEach(start);
}
