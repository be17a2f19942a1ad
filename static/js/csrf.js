// Forms from the live connection have no CSRF token, because several people can get the same rendering. The token of
// this page is added when such a form is submitted.

export function startCsrf() {
  document.addEventListener("submit", ({ target: form }) => {
    const token = document.body.dataset.csrf;
    const ours = new URL(form.action, location.href).origin === location.origin;
    if (!token || !ours || form.method !== "post" || form.elements.csrfmiddlewaretoken) return;
    const input = document.createElement("input");
    Object.assign(input, { type: "hidden", name: "csrfmiddlewaretoken", value: token });
    form.append(input);
  }, { capture: true });
}
