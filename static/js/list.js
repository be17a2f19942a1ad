// Lists: "/" goes to the search field, j and k walk the rows, Enter opens one; filters send themselves.

import { isBusy } from "./keys.js";

function rows() {
  return [...document.querySelectorAll("[data-rows-keys] tbody tr")].filter((row) => row.offsetParent);
}

function walk(step) {
  const all = rows();
  if (!all.length) return;
  const here = all.findIndex((row) => "here" in row.dataset);
  const next = all[Math.min(all.length - 1, Math.max(0, here < 0 ? 0 : here + step))];
  if (here >= 0) delete all[here].dataset.here;
  next.dataset.here = "";
  next.scrollIntoView({ block: "nearest" });
  next.querySelector("a")?.focus({ preventScroll: true });
}

function onKey(event) {
  if (isBusy(event)) return;
  if (event.key === "/") {
    const search = document.querySelector("[data-list-search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "j") walk(1);
  else if (event.key === "k") walk(-1);
}

function dropEmpty(event) {
  if (!event.target.matches("[data-autosubmit]")) return;
  for (const [name, value] of [...event.formData]) {
    if (value === "" && event.formData.getAll(name).length === 1) event.formData.delete(name);
  }
}

export function startList() {
  document.addEventListener("keydown", onKey);
  document.addEventListener("formdata", dropEmpty, { capture: true });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-autosubmit]");
    if (form && event.target.type !== "search") form.requestSubmit();
  });
}
