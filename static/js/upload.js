// <section data-upload="address" data-folder="path">: files that are chosen or dropped here go to that folder in pieces
// (tus 1.0.0). After a failure of the network it continues by itself. After a reload of the page, unfinished files are
// listed: the same file, chosen again in this browser, continues.

import { say } from "./messages.js";

const PIECE_BYTES = 4 * 1024 * 1024;
const PAUSES_MS = [1000, 2000, 5000, 10000, 30000];
const MOST_TRIES = 40;

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

async function ask(address, method, headers = {}, body = undefined) {
  const common = { "X-CSRFToken": document.body.dataset.csrf, "Tus-Resumable": "1.0.0", Accept: "application/json" };
  const answer = await fetch(address, { method, headers: { ...common, ...headers }, body });
  if (answer.status >= 500 || answer.status === 429) throw new TypeError(String(answer.status)); // as without a network
  return answer;
}

/** Waits before the next try, longer each time. Throws the error after many tries, or if it is none of the network.
 *  A stale upload is one of it: an older request, lost on its way, has written some bytes late. */
async function pause(row, error, tries) {
  const isOfNetwork = error instanceof TypeError || error.code === "stale_upload";
  if (!isOfNetwork || tries === MOST_TRIES) throw error;
  row.state(say("upload_waiting"));
  await new Promise((resume) => setTimeout(resume, PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)]));
}

/** The answer, after failures of the network with pauses between them. */
async function persist(row, request) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await request();
    } catch (error) {
      await pause(row, error, tries);
    }
  }
}

async function problemOf(answer) {
  const document = await answer.json().catch(() => ({}));
  return Object.assign(new Error(document.detail ?? say("request_failed")), { code: document.code });
}

/** Notes which state of the file the upload has, so that a changed file of the same size does not continue it. */
function note(address, file) {
  try {
    localStorage.setItem(`hekla.upload.${address.split("/").pop()}`, String(file.lastModified));
  } catch {
    // Storage may be blocked: then an upload continues until the page is left.
  }
}

function isSame(address, file) {
  try {
    return localStorage.getItem(`hekla.upload.${address.split("/").pop()}`) === String(file.lastModified);
  } catch {
    return false;
  }
}

function forget(address) {
  try {
    localStorage.removeItem(`hekla.upload.${address.split("/").pop()}`);
  } catch {
    // As above.
  }
}

/** A row of the list: the name of a file, its progress, and its buttons. */
function addRow(box, name) {
  const row = box.querySelector("template").content.firstElementChild.cloneNode(true);
  const part = (word) => row.querySelector(`[data-upload-${word}]`);
  part("name").textContent = name;
  box.querySelector("[data-upload-list]").append(row);
  return {
    row,
    part,
    state: (text) => { part("state").textContent = text; },
    progress: (done, all) => {
      part("bar").value = all ? done / all : 1;
      part("state").textContent = `${all ? Math.floor((100 * done) / all) : 100} %`;
    },
  };
}

async function begin(box, row, file, path, replaces) {
  const listed = await persist(row, () => ask(box.dataset.upload, "GET"));
  if (!listed.ok) throw await problemOf(listed);
  const found = (await listed.json()).uploads.filter((one) => one.path === path && one.size_bytes === file.size);
  const known = found.find((one) => isSame(`/api/v1/uploads/${one.uid}`, file));
  if (known && !replaces) return `/api/v1/uploads/${known.uid}`;
  const facts = Object.entries({ path, ...(replaces ? { replaces } : {}) }).map(([key, text]) => `${key} ${base64(text)}`);
  const headers = { "Upload-Length": String(file.size), "Upload-Metadata": facts.join(",") };
  const begun = await persist(row, () => ask(box.dataset.upload, "POST", headers));
  if (!begun.ok) throw await problemOf(begun);
  note(begun.headers.get("Location"), file);
  return begun.headers.get("Location");
}

function write(address, offset, piece = undefined) {
  return ask(address, "PATCH", { "Content-Type": "application/offset+octet-stream", "Upload-Offset": String(offset) }, piece);
}

async function send(row, file, address) {
  const offsetNow = async () => {
    const found = await persist(row, () => ask(address, "HEAD"));
    const answer = found.status === 409 ? await persist(row, () => write(address, file.size)) : found; // with a reason
    if (!answer.ok) throw await problemOf(answer);
    return Number(answer.headers.get("Upload-Offset"));
  };
  let offset = await offsetNow();
  row.progress(offset, file.size);
  let tries = 0;
  while (offset < file.size) {
    const piece = file.slice(offset, offset + PIECE_BYTES);
    try {
      const answer = await write(address, offset, piece);
      if (!answer.ok) throw await problemOf(answer);
      offset = Number(answer.headers.get("Upload-Offset"));
      tries = 0;
    } catch (error) {
      await pause(row, error, tries);
      tries += 1;
      offset = await offsetNow(); // a part of the piece may have arrived
    }
    row.progress(offset, file.size);
  }
}

async function upload(box, file, replaces = "") {
  const path = box.dataset.folder ? `${box.dataset.folder}/${file.name}` : file.name;
  const row = addRow(box, file.name);
  let address = "";
  row.part("cancel").addEventListener("click", () => {
    if (address) ask(address, "DELETE").catch(() => {});
    row.row.remove();
  });
  row.part("replace").addEventListener("click", () => {
    row.row.remove();
    upload(box, file, "*").then((isDone) => isDone && location.reload());
  });
  try {
    address = await begin(box, row, file, path, replaces);
    await send(row, file, address);
    forget(address);
    row.state(say("upload_done"));
    row.part("cancel").hidden = true;
    return true;
  } catch (error) {
    row.row.classList.add("state-failed");
    row.state(error instanceof TypeError ? say("unreachable") : error.message);
    row.part("replace").hidden = error.code !== "file_exists";
    return false;
  }
}

async function uploadAll(box, files) {
  const done = [];
  for (const file of files) done.push(await upload(box, file)); // one after another, in their order
  if (done.length && done.every(Boolean)) location.reload(); // the list shows them
}

async function listUnfinished(box) {
  box.dataset.uploadListed = "yes";
  const answer = await ask(box.dataset.upload, "GET").catch(() => null);
  if (!answer?.ok) return;
  for (const one of (await answer.json()).uploads) {
    const row = addRow(box, one.path);
    row.progress(one.received_bytes, one.size_bytes);
    row.state(say("upload_unfinished"));
    row.part("cancel").addEventListener("click", () => {
      ask(`/api/v1/uploads/${one.uid}`, "DELETE").catch(() => {});
      row.row.remove();
    });
  }
}

export function startUploads() {
  const boxOf = (event) => event.target.closest?.("[data-upload]");
  document.addEventListener("change", (event) => {
    const box = event.target.matches("[data-upload-choose]") && boxOf(event);
    if (box) uploadAll(box, [...event.target.files]);
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      const box = boxOf(event);
      if (!box) return;
      event.preventDefault();
      box.classList.toggle("is-target", kind === "dragover");
      if (kind === "drop") uploadAll(box, [...event.dataTransfer.files]);
    });
  }
  const listAll = () => document.querySelectorAll("[data-upload]:not([data-upload-listed])").forEach(listUnfinished);
  document.addEventListener("htmx:afterSettle", listAll);
  listAll();
}
