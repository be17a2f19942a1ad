// Security keys and passkeys (WebAuthn). <form data-key="create"> or "get" calls the browser's key API before submission:
// data-key-options has its options, and the field `credential` gets the result. Without a result the form is not
// submitted, and its [data-key-problem] shows the reason.

import { icon } from "./icon.js";
import { say } from "./messages.js";

const ASKS = {
  create: (options) => navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }),
  get: (options) => navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }),
};

function why({ name, message }) {
  if (name === "NotAllowedError" || name === "AbortError") return say("key_stopped");
  if (name === "InvalidStateError") return say("key_known");
  return say("key_failed", { reason: message });
}

function explain(form, sentence) {
  form.querySelector("[data-key-problem]").replaceChildren(...(sentence ? [icon("warning"), sentence] : []));
}

function isKnownHere() {
  return Boolean(window.PublicKeyCredential?.parseCreationOptionsFromJSON && navigator.credentials);
}

async function answer(form) {
  const button = form.querySelector("button");
  explain(form, "");
  button.disabled = true;
  try {
    const credential = await ASKS[form.dataset.key](JSON.parse(form.dataset.keyOptions));
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  } catch (error) {
    explain(form, why(error));
    button.disabled = false;
    button.focus();
  }
}

export function startSecurityKeys() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.key) return;
    event.preventDefault();
    if (isKnownHere()) answer(form);
    else explain(form, say("key_unknown_here"));
  });
}
