// The way back to what was begun in a form and left: <form data-draft-back="name" hidden> posts it to the server, which
// shows it as it was, since a form of another kind has other fields. What it holds leaves this tab only then.

import { dropDraft, leftDraft } from "./form.js";

/** The fields as a browser would send them. */
function sent(values) {
  const fields = {};
  for (const [name, state, value] of values) if (state !== false) (fields[name] ??= []).push(state === true ? value : state);
  return fields;
}

export function startDraftBack() {
  const offer = document.querySelector("form[data-draft-back]");
  const draft = offer && leftDraft(offer.dataset.draftBack);
  if (!draft) return;
  offer.elements.namedItem("before").value = JSON.stringify(sent(draft.values));
  offer.hidden = false;
  offer.addEventListener("submit", () => dropDraft(draft.key));
  offer.querySelector("[data-draft-drop]").addEventListener("click", () => {
    dropDraft(draft.key);
    offer.hidden = true;
  });
}
