// Drafts: <form data-draft="name"> saves typed values in this tab until the server accepts them.
// The first page of the console without the form drops a submitted draft (but not a sign-in page or an error page). If the
// form comes back with problems, or has data-answered, the server's values replace the draft.
// data-unsaved-warning asks before the tab closes.

import { say } from "./messages.js";
import { addRow } from "./rows.js";

const PREFIX = "hekla.draft.";
const KEEPS_MS = 300;
const NEVER = /password|secret|token|csrf|^before$/i; // "before" is a whole draft with its secrets

function storage() {
  try {
    return window.sessionStorage;
  } catch {
    return null; // storage is blocked: no drafts
  }
}

function controls(form) {
  return [...form.elements].filter((control) => control.name && !NEVER.test(control.name) && !["password", "file", "submit", "button"].includes(control.type));
}

function read(form) {
  return controls(form).map((control) => [control.name, control.type === "checkbox" || control.type === "radio" ? control.checked : control.value, control.value]);
}

function save(form, sent = false) {
  try {
    storage()?.setItem(PREFIX + form.dataset.draft, JSON.stringify({ sent, at: Date.now(), values: read(form) }));
  } catch {
    // The storage is full. The form still has the values.
  }
}

function growRows(form, values) {
  for (const box of form.querySelectorAll("[data-rows]")) {
    const wanted = values.find(([name]) => name === `${box.dataset.rows}-TOTAL_FORMS`);
    while (wanted && box.querySelectorAll("[data-row]").length < Math.min(Number(wanted[1]), Number(box.dataset.rowsMax))) addRow(box);
  }
}

/** Whether a control keeps the value of the page: hidden ones do, except those that say what the person saw of a row or file. */
function isKept(control) {
  return control.type === "hidden" && !control.name.startsWith("initial-") && !("restored" in control.dataset);
}

function restore(form, values) {
  growRows(form, values);
  const left = [...values];
  for (const control of controls(form)) {
    const ticked = control.type === "checkbox" || control.type === "radio";
    const at = left.findIndex(([name, , value]) => name === control.name && (!ticked || value === control.value));
    if (at < 0 || control.name.endsWith("_FORMS") || isKept(control)) continue;
    const [[, value]] = left.splice(at, 1);
    if (ticked) control.checked = value;
    else control.value = value;
  }
}

function offerFresh(form) {
  const discard = document.createElement("button");
  discard.type = "button";
  discard.className = "button button-quiet button-small";
  discard.textContent = say("draft_discard");
  discard.addEventListener("click", () => {
    storage()?.removeItem(PREFIX + form.dataset.draft);
    delete form.dataset.dirty;
    location.reload();
  });
  const line = document.createElement("p");
  line.className = "help";
  line.append(say("draft_restored"), " ", discard);
  form.prepend(line);
}

/** Whether a hidden field differs between draft and form. People cannot edit it, so the form must be of another kind. */
function isOfAnotherKind(form, values) {
  return values.some(([name, value]) => {
    const control = form.elements.namedItem(name);
    return control?.type === "hidden" && !name.endsWith("_FORMS") && control.value !== value;
  });
}

function open(form) {
  const draft = JSON.parse(storage()?.getItem(PREFIX + form.dataset.draft) ?? "null");
  const answered = form.querySelector(".field-wrong") || document.querySelector(".notice[role=alert]");
  if ("answered" in form.dataset || (answered && draft?.sent)) save(form); // the server did not accept it
  else if (draft && !answered) show(form, draft.values);
}

function show(form, values) {
  if (JSON.stringify(values) === JSON.stringify(read(form))) return;
  if (document.querySelector("[data-draft-back]") && isOfAnotherKind(form, values)) {
    form.dataset.draftAside = "";
    return;
  }
  restore(form, values);
  offerFresh(form);
}

function dropTaken() {
  if (document.body.classList.contains("public")) return; // a sign-in page or a refusal: the server accepted nothing
  const here = new Set([...document.querySelectorAll("form[data-draft]")].map((form) => PREFIX + form.dataset.draft));
  const kept = storage();
  for (const key of kept ? Object.keys(kept) : []) {
    if (key.startsWith(PREFIX) && !here.has(key) && JSON.parse(kept.getItem(key)).sent) kept.removeItem(key);
  }
}

function watch(form) {
  let timer;
  form.addEventListener("input", () => {
    form.dataset.dirty = "yes";
    clearTimeout(timer);
    timer = setTimeout(() => save(form), KEEPS_MS);
  });
  form.addEventListener("submit", () => {
    clearTimeout(timer);
    delete form.dataset.dirty;
    save(form, true);
  });
}

/** The newest draft with this name prefix that was not submitted and that no form of this page shows, with its key. */
export function leftDraft(name) {
  const shown = new Set([...document.querySelectorAll("form[data-draft]:not([data-draft-aside])")].map((form) => PREFIX + form.dataset.draft));
  const keys = Object.keys(storage() ?? {}).filter((key) => key.startsWith(PREFIX + name) && !shown.has(key));
  const drafts = keys.map((key) => ({ key, ...JSON.parse(storage().getItem(key)) })).filter((draft) => !draft.sent);
  return drafts.sort((one, other) => other.at - one.at)[0];
}

/** Drops a draft that was restored or discarded. */
export function dropDraft(key) {
  storage()?.removeItem(key);
}

/** Drops the draft of a form that a script has saved or discards, unless something is typed after the call. */
export function dropDraftOf(form) {
  const drop = () => "dirty" in form.dataset || dropDraft(PREFIX + form.dataset.draft);
  delete form.dataset.dirty;
  drop();
  setTimeout(drop, 2 * KEEPS_MS); // a draft of what was typed just before is stored late
}

/** Whoever signs in next in this tab reads none of them. Drafts of a session that expired stay. */
function dropAll() {
  const kept = storage();
  for (const key of kept ? Object.keys(kept) : []) if (key.startsWith(PREFIX)) kept.removeItem(key);
}

export function startDrafts() {
  dropTaken();
  document.addEventListener("submit", ({ target: form }) => "signOut" in form.dataset && dropAll());
  for (const form of document.querySelectorAll("form[data-draft]")) {
    open(form);
    watch(form);
  }
  addEventListener("beforeunload", (event) => {
    if (document.querySelector("form[data-unsaved-warning][data-dirty]")) event.preventDefault();
  });
}
