// <form data-checked>: the server checks it when a changed field is left (`do=check`). Only fields that the person has
// changed show their problems: a form that is half filled in is not wrong yet. Submit shows all of them.

const changed = new WeakMap(); // form -> changed controls

function showProblems(control, messages) {
  const field = control.closest(".field");
  const box = field?.querySelector(".problems");
  if (!box) return;
  const old = [...box.children].map((line) => line.textContent.trim());
  if (old.length === messages.length && old.every((text, at) => text === messages[at])) return;
  field.classList.toggle("field-wrong", messages.length > 0);
  control.setAttribute("aria-invalid", String(messages.length > 0));
  if (messages.length) control.setAttribute("aria-errormessage", box.id);
  box.replaceChildren(
    ...messages.map((message) => {
      const line = document.createElement("p");
      line.className = "problem";
      line.textContent = message;
      return line;
    }),
  );
}

async function check(form, requests) {
  requests.last?.abort();
  requests.last = new AbortController();
  const body = new FormData(form);
  for (const [name, value] of [...body]) if (value instanceof File) body.delete(name);
  body.set("do", "check");
  body.delete("before"); // the undone draft is not checked
  try {
    const response = await fetch(form.action, { method: "POST", body, signal: requests.last.signal, headers: { Accept: "application/json" } });
    if (!response.ok || response.redirected) return;
    const { problems } = await response.json();
    for (const control of form.elements) if (changed.get(form).has(control)) showProblems(control, problems[control.id] ?? []);
  } catch {
    // Offline, or a newer check is on its way. Submitting checks everything again.
  }
}

export function startFormChecks() {
  for (const form of document.querySelectorAll("form[data-checked]")) {
    const requests = {};
    changed.set(form, new Set(form.querySelectorAll(".field-wrong [name]")));
    form.addEventListener("change", (event) => {
      if (!event.target.name || event.target.type === "file") return;
      changed.get(form).add(event.target);
      check(form, requests);
    });
  }
}
