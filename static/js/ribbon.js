// Shows the numbers of the reason ribbon's cell under the pointer or keyboard focus. Screen readers get them from the
// cell itself.

function show({ target }) {
  const figure = target.closest?.("[data-ribbon]");
  if (!figure) return;
  figure.querySelector("[data-ribbon-words]").textContent = target.closest("rect")?.getAttribute("aria-label") ?? "";
}

export function startRibbons() {
  for (const event of ["focusin", "mouseover"]) document.addEventListener(event, show);
}
