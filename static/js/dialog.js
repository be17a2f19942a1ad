// Dialogs, and the confirmation of dangerous actions.
//
// <button data-dialog-open="id"> opens the dialog of that id. <form data-confirm="what happens, and to what"> asks first:
// data-confirm-title, data-confirm-do (the label of the button), data-confirm-name (a name to type, for what cannot be
// undone). Each button of a form can have its own question.

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

function ask(form, submitter) {
  const dialog = document.getElementById("confirm-dialog");
  fill(dialog, question(form, submitter));
  dialog.returnValue = "cancel";
  dialog.onclose = () => {
    if (dialog.open || dialog.returnValue !== "confirm") return; // this is the late close event of the previous question
    agreed.add(form);
    form.requestSubmit(submitter);
  };
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
