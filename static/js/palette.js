// Ctrl/⌘ K: the command palette. It offers the links of the rail, elements with data-palette, search results of the
// server, and a search in each list that supports it (data-searchable on its link in the rail).

import { icon } from "./icon.js";
import { say } from "./messages.js";
import { visible } from "./visible_text.js";

const MOST = 12;
const PAUSE = 150; // ms without a key press before the server is queried
const SHORTEST = 2;
let chosen = 0;
let found = [];
let asking;

function iconOf(link) {
  return link.querySelector("use")?.getAttribute("href").split("#")[1] ?? "link";
}

function entries(typed) {
  const wanted = typed.trim().toLowerCase();
  const links = [...document.querySelectorAll("[data-nav] a[href]:not([data-more]), a[data-palette]")];
  const words = (link) => link.textContent.trim().replace(/\s+/g, " ");
  const ways = links.map((link) => ({ label: words(link), href: link.href, icon: iconOf(link) }));
  const searches = wanted ? links.filter((link) => "searchable" in link.dataset) : [];
  return ways
    .filter(({ label }) => label && label.toLowerCase().includes(wanted))
    .concat(searches.map((link) => ({ label: say("search_in", { list: words(link), text: typed.trim() }), href: `${link.href}?q=${encodeURIComponent(typed.trim())}`, icon: "search" })))
    .slice(0, MOST);
}

function ask(dialog) {
  clearTimeout(asking);
  const typed = dialog.querySelector("input").value.trim();
  if (typed.length < SHORTEST) found = [];
  else asking = setTimeout(() => look(dialog, typed), PAUSE);
}

async function look(dialog, typed) {
  const answer = await fetch(`${dialog.dataset.search}?q=${encodeURIComponent(typed)}`, { headers: { Accept: "application/json" } }).catch(() => null);
  if (typed !== dialog.querySelector("input").value.trim()) return; // the input has changed since the request
  const hits = answer?.ok ? await answer.json() : [];
  found = hits.map((hit) => ({ label: visible(hit.name), note: visible([hit.kind_name, hit.note].filter(Boolean).join(" · ")), href: hit.path, icon: hit.icon }));
  draw(dialog);
}

function describe(item, entry) {
  item.append(icon(entry.icon), entry.label);
  if (!entry.note) return;
  const note = document.createElement("small");
  note.textContent = entry.note;
  item.append(note);
}

function draw(dialog) {
  const list = dialog.querySelector("ul");
  const input = dialog.querySelector("input");
  const all = [...entries(input.value), ...found];
  chosen = Math.max(0, Math.min(chosen, all.length - 1));
  list.replaceChildren(...all.map((entry, index) => {
    const item = document.createElement("li");
    item.role = "option";
    item.id = `palette-${index}`;
    item.dataset.href = entry.href;
    item.ariaSelected = String(index === chosen);
    describe(item, entry);
    return item;
  }));
  if (all.length) input.setAttribute("aria-activedescendant", `palette-${chosen}`);
  else {
    const none = document.createElement("li");
    none.className = "palette-none";
    none.textContent = say("no_results");
    list.append(none);
  }
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function go(item) {
  if (item?.dataset.href) location.assign(item.dataset.href);
}

function onKey(event, dialog) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    chosen += step;
    draw(dialog);
  } else if (event.key === "Enter") {
    event.preventDefault();
    go(dialog.querySelector('[aria-selected="true"]'));
  } else if (event.key === "Escape") dialog.close(); // by default, Escape would only clear the search field
}

function openPalette(dialog) {
  dialog.querySelector("input").value = "";
  chosen = 0;
  found = [];
  draw(dialog);
  dialog.showModal();
}

export function startPalette() {
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  dialog.addEventListener("keydown", (event) => onKey(event, dialog));
  dialog.addEventListener("input", () => {
    chosen = 0;
    draw(dialog);
    ask(dialog);
  });
  dialog.querySelector("ul").addEventListener("click", (event) => go(event.target.closest("li")));
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette-open]")) return;
    event.preventDefault();
    openPalette(dialog);
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k" || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    openPalette(dialog);
  });
}
