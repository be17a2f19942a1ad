// Forms that came over the live connection were rendered for nobody in particular: the token of this page is added
// when one of them is sent.

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
