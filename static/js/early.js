// Runs before the first paint, so that a page never flashes in the other theme, and parts that load later have their
// room. That is why it is a classic script.
(function () {
  try {
    const theme = localStorage.getItem("hekla.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    const heights = new CSSStyleSheet();
    for (const key of Object.keys(localStorage)) {
      const [, id, width] = /^hekla\.height\.([\w-]+)\.(\d+)$/.exec(key) ?? [];
      if (Number(width) !== Math.round(innerWidth / 100)) continue;
      heights.insertRule(`#${id}:empty { min-height: ${Number(localStorage.getItem(key))}px; }`);
    }
    document.adoptedStyleSheets = [heights];
  } catch {
    // Storage may be blocked: then the system's theme applies.
  }
})();
