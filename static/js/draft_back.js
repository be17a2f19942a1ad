// Restores an unsaved draft: <form data-draft-back="name" hidden> posts it to the server, which renders its form, because
// another kind of form has other fields. The draft leaves this tab only then.

import { dropDraft, leftDraft } from "./form.js";

/** The fields as a browser would submit them. */
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
