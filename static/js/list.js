// Lists: "/" focuses the search field, j and k move between rows, Enter opens one, x selects it; the letter in the
// tip of a row's button presses it; filters submit themselves.
//
// The selection is stored by value, not by checkbox: a live update may put another row into a checkbox.

import { isBusy } from "./keys.js";

const chosen = new Set();

function boxes() {
  return [...document.querySelectorAll('[data-rows-keys] tbody input[name="uid"]')];
}

function showChosen() {
  const shown = boxes();
  for (const box of shown) box.checked = !box.disabled && chosen.has(box.value);
  const all = document.querySelector("[data-choose-all]");
  const choosable = shown.filter((box) => !box.disabled);
  if (all) {
    all.disabled = choosable.length === 0;
    all.checked = choosable.length > 0 && choosable.every((box) => box.checked);
  }
  for (const count of document.querySelectorAll("[data-chosen]")) count.textContent = String(shown.filter((box) => box.checked).length);
}

function choose(box, is) {
  if (is && !box.disabled) chosen.add(box.value);
  else chosen.delete(box.value);
}

function onChoice({ target }) {
  if (target.matches("[data-choose-all]")) boxes().forEach((box) => choose(box, target.checked));
  else if (target.matches('[data-rows-keys] input[name="uid"]')) choose(target, target.checked);
  else return;
  showChosen();
}

function chooseHere() {
  const box = rows().find((row) => "here" in row.dataset)?.querySelector('input[name="uid"]');
  if (!box) return;
  choose(box, !box.checked);
  showChosen();
}

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
  next.querySelector("th a, a")?.focus({ preventScroll: true });
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
  else if (event.key === "x") chooseHere();
  else if (/^[a-z]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
    rows().find((row) => "here" in row.dataset)?.querySelector(`[data-key="${event.key}"]`)?.click();
  }
}

function dropEmpty(event) {
  if (!event.target.matches("[data-autosubmit]")) return;
  for (const [name, value] of [...event.formData]) {
    if (value === "" && event.formData.getAll(name).length === 1) event.formData.delete(name);
  }
}

export function startList() {
  document.addEventListener("keydown", onKey);
  boxes().forEach((box) => choose(box, box.checked)); // the browser may have restored checked boxes
  showChosen();
  document.addEventListener("change", onChoice);
  document.addEventListener("hekla:live", showChosen);
  document.addEventListener("formdata", dropEmpty, { capture: true });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-autosubmit]");
    const isHalfTyped = event.target.type === "date" && event.target.value && event.target.value < "1000"; // of a year
    if (form && event.target.type !== "search" && !isHalfTyped) form.requestSubmit();
  });
}
