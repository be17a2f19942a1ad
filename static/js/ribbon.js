// The numbers of the cell of a reason ribbon that one points at or moves to with the keyboard. A screen reader has
// them from the cell itself.

function show({ target }) {
  const figure = target.closest?.("[data-ribbon]");
  if (!figure) return;
  figure.querySelector("[data-ribbon-words]").textContent = target.closest("rect")?.getAttribute("aria-label") ?? "";
}

export function startRibbons() {
  for (const event of ["focusin", "mouseover"]) document.addEventListener(event, show);
}
