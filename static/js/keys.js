// Global keyboard shortcuts. They are disabled while the person types or a dialog is open.

/** Whether the person types, holds a modifier key, or has a dialog open. */
export function isBusy(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return true;
  return Boolean(event.target.closest?.("input, textarea, select, [contenteditable]"));
}

function showKeys() {
  document.getElementById("keys-dialog")?.showModal();
}

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "?" && !isBusy(event)) showKeys();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys-open]")) showKeys();
  });
}
