// data-copy="text": a click copies this text.

import { say } from "./messages.js";
import { showToast } from "./toast.js";

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    showToast(say("copied"), "success");
  } catch {
    showToast(say("not_copied"), "warning");
  }
}

export function startCopy() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copyText(button.dataset.copy);
  });
}
