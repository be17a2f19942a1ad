// <div data-code-files>: choosers of files and of a folder, which become rows of files in the form. They need no request:
// the browser reads the text, and the server checks the rows like typed ones.

import { say } from "./messages.js";
import { addRow } from "./rows.js";
import { showToast } from "./toast.js";

const NOT_CODE = /(^|\/)(\.[^/]*|__pycache__|node_modules)(\/|$)/;
const text = new TextDecoder("utf-8", { fatal: true });
const REFUSALS = {
  binary: (values) => say("code_binary", values),
  large: (values) => say("code_large", values),
  many: (values) => say("code_many", values),
};

/** The name in the working folder: a chosen folder becomes the working folder itself. */
function nameOf(file) {
  return file.webkitRelativePath ? file.webkitRelativePath.split("/").slice(1).join("/") : file.name;
}

function fields(row) {
  return { name: row.querySelector('[name$="-name"]'), text: row.querySelector('[name$="-text"]') };
}

/** The row of a file: one with its name, else an empty one, else a new one; null if there is no room. */
function rowFor(box, name) {
  const rows = [...box.querySelectorAll("[data-row]")].map(fields);
  const found = rows.find((row) => row.name.value === name) ?? rows.find((row) => !row.name.value && !row.text.value);
  if (found) return found;
  return rows.length < Number(box.dataset.rowsMax) ? fields(addRow(box)) : null;
}

async function add(box, file, most) {
  if (file.size > most) return "large";
  try {
    const content = text.decode(await file.arrayBuffer());
    const row = content.includes("\0") ? undefined : rowFor(box, nameOf(file));
    if (!row) return row === null ? "many" : "binary";
    row.name.value = nameOf(file);
    row.text.value = content;
    return "";
  } catch {
    return "binary";
  }
}

async function addAll(place, files) {
  const box = place.closest("details").querySelector("[data-rows]");
  const most = Number(place.dataset.mostBytes);
  const refused = {};
  let added = 0;
  for (const file of files.filter((one) => !NOT_CODE.test(nameOf(one)))) {
    const why = await add(box, file, most); // one after the other, in the order of the rows
    if (why) (refused[why] ??= []).push(nameOf(file));
    else added++;
  }
  box.dispatchEvent(new Event("input", { bubbles: true }));
  if (added) showToast(say("code_added", { n: added }), "success");
  for (const [why, names] of Object.entries(refused)) showToast(REFUSALS[why]({ names: names.slice(0, 5).join(", "), most: most / 1024 }), "error");
}

export function startCodeFiles() {
  for (const place of document.querySelectorAll("[data-code-files]")) place.hidden = false;
  document.addEventListener("change", ({ target }) => {
    const place = target.closest?.("[data-code-files]");
    if (!place) return;
    addAll(place, [...target.files]);
    target.value = "";
  });
}
