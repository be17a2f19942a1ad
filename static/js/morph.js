// Puts new renderings into the page without disturbing the reader: focus, typed text, scroll position, open details and
// selections stay. data-keep marks elements that scripts own (a log, a plot): they are never changed.

const KEPT = "[data-keep], [data-log], [data-plot-area]";
const OWN_STATE = { DETAILS: ["open"], DIALOG: ["open"], TR: ["data-here"] };

function sameTime(before, after) {
  if (before.nodeName !== "TIME" || after.nodeName !== "TIME") return false;
  return ["datetime", "data-from", "data-to"].every((name) => before.getAttribute(name) === after.getAttribute(name));
}

const callbacks = {
  beforeNodeMorphed: (before, after) => !(before.matches?.(KEPT) || sameTime(before, after)),
  beforeAttributeUpdated: (name, element) => !(OWN_STATE[element.nodeName] ?? []).includes(name),
};

/** Morphs each top-level element of html into the page's element with the same id. Returns the elements found. */
export function applyFragments(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const touched = [];
  for (const fresh of [...holder.content.children]) {
    const target = fresh.id && document.getElementById(fresh.id);
    if (!target) continue;
    window.Idiomorph.morph(target, fresh, { morphStyle: "outerHTML", ignoreActiveValue: true, callbacks });
    const now = document.getElementById(fresh.id);
    window.htmx?.process(now);
    touched.push(now);
  }
  return touched;
}
