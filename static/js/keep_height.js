// Parts that load after their page (data-keep-height) begin with the height that they had last time in this browser, so
// that what is below them does not jump. Without storage they begin empty.

const STEP = 100; // px of the window's width that share a height

function key(element) {
  return `hekla.height.${element.id}.${Math.round(innerWidth / STEP)}`;
}

function lastHeight(element) {
  try {
    return localStorage.getItem(key(element));
  } catch {
    return null;
  }
}

function onSettle({ target }) {
  if (!target.matches?.("[data-keep-height]")) return;
  target.style.minHeight = "";
  try {
    localStorage.setItem(key(target), target.offsetHeight);
  } catch {
    // storage is blocked
  }
}

export function startHeights() {
  for (const element of document.querySelectorAll("[data-keep-height]:not(:has(*))")) {
    const height = lastHeight(element);
    if (height) element.style.minHeight = `${height}px`;
  }
  document.addEventListener("htmx:afterSettle", onSettle);
}
