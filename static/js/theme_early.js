// Runs before the first paint, so that a page never flashes in the other theme. That is why it is a classic script.
(function () {
  try {
    const theme = localStorage.getItem("hekla.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be blocked: then the system's theme applies.
  }
})();
