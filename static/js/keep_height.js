// Parts that load after their page (data-keep-height) begin with the height that they had last time in this browser tab,
// so that what is below them does not jump.

function key(element) {
  return `height ${location.pathname} ${element.id} ${innerWidth}`;
}

export function startHeights() {
  for (const element of document.querySelectorAll("[data-keep-height]:not(:has(*))")) {
    const height = sessionStorage.getItem(key(element));
    if (height) element.style.minHeight = `${height}px`;
  }
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (!target.matches?.("[data-keep-height]")) return;
    target.style.minHeight = "";
    sessionStorage.setItem(key(target), target.offsetHeight);
  });
}
