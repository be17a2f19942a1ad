// Tabs whose links are sections of this page (#id): one section is visible at a time, selected by the URL.
// Without scripts all sections are visible, one below the other.

function panelsOf(bar) {
  const pairs = [...bar.querySelectorAll('a[href^="#"]')].map((tab) => [tab, document.getElementById(tab.hash.slice(1))]);
  return pairs.filter(([, panel]) => panel);
}

function select(bar, hash) {
  const pairs = panelsOf(bar);
  if (!pairs.length) return;
  const chosen = pairs.find(([tab, panel]) => tab.hash === hash || panel.querySelector(`[id="${CSS.escape(hash.slice(1))}"]`)) ?? pairs[0];
  for (const [tab, panel] of pairs) {
    panel.hidden = panel !== chosen[1];
    if (tab === chosen[0]) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

function onClick(event) {
  const tab = event.target.closest('a[href^="#"]');
  if (!tab) return;
  event.preventDefault();
  history.replaceState(null, "", tab.hash);
  select(event.currentTarget, tab.hash);
}

export function startTabs(root) {
  for (const bar of root.querySelectorAll("[data-tabs]")) {
    if (!bar.dataset.started) {
      bar.dataset.started = "yes";
      bar.addEventListener("click", onClick);
      if (panelsOf(bar).some(([tab]) => tab.hash === location.hash)) addEventListener("load", () => scrollTo(0, 0), { once: true });
      addEventListener("hashchange", () => select(bar, location.hash));
    }
    const now = bar.querySelector('[aria-current][href^="#"]');
    select(bar, location.hash || now?.hash || "");
  }
}
