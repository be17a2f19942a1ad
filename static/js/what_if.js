// The preview beside a submission form; htmx requests it while the person types. A click on <button data-take="change">
// applies a suggestion: the server returns the fields to change.

import { say } from "./messages.js";
import { showToast } from "./toast.js";

function fill(form, fields) {
  for (const [name, value] of Object.entries(fields)) {
    const control = form.elements[name];
    if (!control) continue;
    control.value = value;
    control.closest("details")?.setAttribute("open", "");
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

async function take(button) {
  const form = document.getElementById("submission");
  const body = new FormData(form);
  for (const name of ["upload", "before"]) body.delete(name);
  body.set("change", button.dataset.take);
  const headers = { "X-CSRFToken": document.body.dataset.csrf };
  const answer = await fetch(button.closest("[data-what-if]").dataset.whatIf, { method: "POST", body, headers });
  if (!answer.ok) throw new Error(String(answer.status));
  fill(form, await answer.json());
}

export function startWhatIf() {
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-take]");
    if (button) take(button).catch(() => showToast(say("request_failed"), "error"));
  });
  // Show a refusal in place, not as a toast after every key press.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target.id !== "what-if" || detail.xhr.status !== 403) return;
    detail.shouldSwap = true;
    detail.isError = false;
  });
}
