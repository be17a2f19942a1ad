// Plots: the server builds each figure with Plotly's Python package (pages/frame/plots.py) and puts it into the page as JSON:
// {figure: {data, layout}, templates: {light, dark}}. Plotly's script is loaded with the first plot of a page. A plot is
// redrawn when the theme or its figure changes; what the reader zoomed into or switched off stays.

import { joinCrosshair } from "./crosshair.js";
import { language, say } from "./messages.js";
import { savePlot } from "./plot_image.js";
import { loadScript } from "./script.js";
import { wallTime } from "./time.js";

// Plotly's dates are English; other languages get numeric dates.
const DATES = { year: "%Y", month: "%Y-%m", dayMonth: "%m-%d", dayMonthYear: "%Y-%m-%d" };
const LOCALE = language.startsWith("en") ? {} : { locale: language, locales: { [language]: { dictionary: {}, format: DATES } } };
/** Room for a date below the axis, in pixels. Plotly turns labels that do not fit, and they cover the key. */
const LABEL_WIDTH = 110;
const drawn = new WeakMap(); // what each area shows
const CONFIG = { displayModeBar: false, responsive: true, ...LOCALE };

function theme() {
  return document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

/** Instants of the server ("…Z") in the person's zone, without it; Plotly does not support time zones. */
function localised(data) {
  const isInstant = (x) => typeof x === "string" && x.endsWith("Z");
  return data.map((trace) => ({ ...trace, x: trace.x?.map((x) => (isInstant(x) ? wallTime(x) : x)) }));
}

async function draw(element) {
  const text = document.getElementById(element.dataset.plot).textContent;
  const area = element.querySelector("[data-plot-area]");
  const state = theme() + text;
  if (drawn.get(area) === state) return;
  drawn.set(area, state);
  const { figure, templates } = JSON.parse(text);
  try {
    await loadScript(element.dataset.plotScript);
    const xaxis = { nticks: Math.max(2, Math.floor((area.clientWidth || 800) / LABEL_WIDTH)), ...figure.layout.xaxis };
    const layout = { uirevision: "reader", ...figure.layout, xaxis, template: templates[theme()] };
    await window.Plotly.react(area, localised(figure.data), layout, CONFIG);
    joinCrosshair(area);
  } catch {
    drawn.delete(area);
    area.textContent = say("plot_failed");
  }
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-plot-png]");
  if (button) savePlot(button.closest("[data-plot]").querySelector("[data-plot-area]"), button.dataset.plotPng);
});
document.addEventListener("hekla:theme", () => document.querySelectorAll("[data-plot]").forEach(draw));

export function startPlots(root) {
  root.querySelectorAll("[data-plot]").forEach(draw);
}
