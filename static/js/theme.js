// The theme: light, dark or system, saved in this browser (early.js applies it before the first paint).

const KEY = "hekla.theme";

function remembered() {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system";
  }
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new CustomEvent("hekla:theme"));
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Storage may be blocked: then the theme applies to this page only.
  }
}

export function startTheme() {
  for (const radio of document.querySelectorAll("[data-theme-switch] input")) radio.checked = radio.value === remembered();
  document.addEventListener("change", (event) => {
    if (!event.target.closest("[data-theme-switch]")) return;
    remember(event.target.value);
    apply(event.target.value);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(remembered()));
}
