// Dialogs, and the question before something dangerous.
//
// <button data-dialog-open="id"> opens the dialog of that id. <form data-confirm="what will happen to whom"> asks first:
// data-confirm-title, data-confirm-do (the word of the button), data-confirm-name (a name to type, for what cannot be undone).
// Where a form has several buttons each may have its own question.

import { say } from "./messages.js";

const agreed = new WeakSet();

function fill(dialog, { confirm, confirmTitle, confirmDo, confirmName }) {
  const typed = dialog.querySelector("[data-confirm-typed]");
  const go = dialog.querySelector("[data-confirm-go]");
  const input = typed.querySelector("input");
  dialog.querySelector("h2").textContent = confirmTitle || confirmDo || "";
  dialog.querySelector("[data-confirm-text]").textContent = confirm;
  if (confirmDo) go.textContent = confirmDo;
  typed.hidden = !confirmName;
  dialog.querySelector("[data-confirm-label]").textContent = say("type_name", { name: confirmName ?? "" });
  input.value = "";
  go.disabled = Boolean(confirmName);
  input.oninput = () => {
    go.disabled = input.value !== confirmName;
  };
}

function question(form, submitter) {
  return submitter?.dataset.confirm ? submitter.dataset : form.dataset;
}

// The page may have changed while somebody thought about it, and have another form for the same now.
function inItsPlace(form, submitter) {
  const asks = (one) => JSON.stringify([one?.name, one?.value, one?.dataset.confirm]);
  for (const other of document.forms) {
    const button = [...other.elements].find((one) => one.type === "submit" && asks(one) === asks(submitter));
    if (other.action === form.action && other.dataset.confirm === form.dataset.confirm && button) return [other, button];
  }
  return [];
}

function ask(form, submitter) {
  const dialog = document.getElementById("confirm-dialog");
  fill(dialog, question(form, submitter));
  dialog.returnValue = "cancel";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "confirm") return;
    const [there, button] = form.isConnected ? [form, submitter] : inItsPlace(form, submitter);
    if (!there) return;
    agreed.add(there);
    there.requestSubmit(button);
  }, { once: true });
  dialog.showModal();
}

function onSubmit(event) {
  const form = event.target;
  if (!question(form, event.submitter).confirm || agreed.delete(form)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  ask(form, event.submitter);
}

export function startDialogs() {
  document.addEventListener("submit", onSubmit, { capture: true });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog-open]");
    if (opener) document.getElementById(opener.dataset.dialogOpen)?.showModal();
    else if (event.target.matches?.("dialog")) event.target.close("cancel"); // its backdrop
  });
}
