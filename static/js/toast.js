// Toasts: messages that disappear. Errors stay until they are closed; failed requests also show an error.

import { icon } from "./icon.js";
import { say } from "./messages.js";

const STAYS_MS = 6000;

function fade(toast) {
  if (!toast.classList.contains("toast-error")) setTimeout(() => toast.remove(), STAYS_MS);
}

/** Shows a message. kind: info, success, warning or error. */
export function showToast(sentence, kind = "info") {
  const toast = document.createElement("div");
  const words = document.createElement("span");
  const close = document.createElement("button");
  toast.className = `toast toast-${kind}`;
  toast.dataset.toast = "";
  words.textContent = sentence;
  close.className = "button button-quiet button-small";
  close.type = "button";
  close.dataset.toastClose = "";
  close.ariaLabel = say("close");
  close.append(icon("close"));
  toast.append(icon(kind === "success" ? "check" : kind === "info" ? "info" : "warning"), words, close);
  document.getElementById("toasts")?.append(toast);
  fade(toast);
}

export function startToasts() {
  document.querySelectorAll("[data-toast]").forEach((toast) => toast.closest("#toasts") && fade(toast));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-toast-close]")) event.target.closest("[data-toast]").remove();
  });
  document.addEventListener("htmx:responseError", () => showToast(say("request_failed"), "error"));
  document.addEventListener("htmx:sendError", () => showToast(say("unreachable"), "error"));
}
