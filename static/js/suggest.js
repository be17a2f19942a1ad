// Suggestions while one types into a field with data-suggest: names of that kind from the search, in the field's list, or what
// data-suggest-by says, such as the notes of people, which are their usernames.
// The browser shows them, and the keys work as in any such field. A chosen one submits the search of a list.

const PAUSE = 150; // ms without a key press before the server is queried
const SHORTEST = 2;
let asking;

async function look(field) {
  const typed = field.value.trim();
  const query = new URLSearchParams({ q: typed, kind: field.dataset.suggest });
  const address = document.getElementById("palette")?.dataset.search;
  const answer = address && (await fetch(`${address}?${query}`, { headers: { Accept: "application/json" } }).catch(() => null));
  if (!answer?.ok || typed !== field.value.trim()) return; // the input has changed since the request
  const names = new Set((await answer.json()).map((hit) => hit[field.dataset.suggestBy ?? "name"]));
  field.list?.replaceChildren(...[...names].map((name) => Object.assign(document.createElement("option"), { value: name })));
}

function onInput(event) {
  const field = event.target;
  if (!field.dataset?.suggest) return;
  clearTimeout(asking);
  const isChosen = event.inputType === "insertReplacementText" || !event.inputType;
  if (isChosen && field.type === "search" && field.value) field.form.requestSubmit();
  else if (field.value.trim().length >= SHORTEST) asking = setTimeout(() => look(field), PAUSE);
}

export function startSuggestions() {
  document.addEventListener("input", onInput);
}
