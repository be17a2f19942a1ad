// Plots: the figure is in the page as JSON ({data, layout} of Plotly), drawn in the theme's colours, again when the theme
// or the figure changes. A page with plots loads vendor/plotly-basic.min.js before app.js has run.

import { language, say } from "./messages.js";

// The library writes dates in English; other languages get them as digits.
const DATES = { year: "%Y", month: "%Y-%m", dayMonth: "%m-%d", dayMonthYear: "%Y-%m-%d" };
const LOCALE = language.startsWith("en") ? {} : { locale: language, locales: { [language]: { dictionary: {}, format: DATES } } };
const CONFIG = { displayModeBar: false, responsive: true, ...LOCALE };
const ORDER = [1, 2, 3, 4, 5, 6, 7].map((number) => `--plot-${number}`);

/** A token as a colour that Plotly understands (light-dark() is resolved by the browser). */
function colour(token) {
  const probe = document.createElement("i");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

function themed(layout = {}) {
  const line = colour("--line");
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true };
  return {
    ...layout,
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    colorway: ORDER.map(colour),
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--muted") },
    margin: { l: 48, r: 12, t: 12, b: 40, ...layout.margin },
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  };
}

/** Instants of the server ("…Z") as the clock of who looks shows them; the library knows no time zones. */
function local(instant) {
  const at = new Date(instant);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
}

function localised(data) {
  const isInstant = (x) => typeof x === "string" && x.endsWith("Z");
  return data.map((trace) => ({ ...trace, x: trace.x?.map((x) => (isInstant(x) ? local(x) : x)) }));
}

function draw(figure) {
  const { data: given, layout } = JSON.parse(document.getElementById(figure.dataset.plot).textContent);
  const data = localised(given);
  const area = figure.querySelector("[data-plot-area]");
  Promise.resolve(window.Plotly.react(area, data, themed(layout), CONFIG)).catch(() => {
    area.textContent = say("plot_failed");
  });
}

document.addEventListener("hekla:theme", () => window.Plotly && document.querySelectorAll("[data-plot]").forEach(draw));

export function startPlots(root) {
  if (!window.Plotly) return;
  root.querySelectorAll("[data-plot]").forEach(draw);
}
