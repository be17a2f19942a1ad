// Runs before anything is painted, so that a page never flashes in the other theme. A classic script on purpose.
(function () {
  try {
    const theme = localStorage.getItem("hekla.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden: then the system's wish holds.
  }
})();
