// Menus close on a click elsewhere; the rail's "More" opens on phones. Without scripts both still open.

function closeOthers(target) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
}

function toggleMore(link) {
  const rest = document.getElementById("more");
  const open = rest.dataset.open !== "yes";
  rest.dataset.open = open ? "yes" : "no";
  link.setAttribute("aria-expanded", String(open));
}

function onKey(event) {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
}

export function startMenus() {
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const more = event.target.closest("[data-more]");
    closeOthers(event.target);
    if (more) {
      event.preventDefault();
      toggleMore(more);
    } else if (!event.target.closest("#more")) {
      const rest = document.getElementById("more");
      if (rest?.dataset.open === "yes") toggleMore(document.querySelector("[data-more]"));
    }
  });
}
