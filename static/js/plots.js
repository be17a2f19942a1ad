// Plots: the server builds each figure with Plotly's Python package (pages/frame/plots.py) and puts it into the page as JSON:
// {figure: {data, layout}, templates: {light, dark}}. Plotly's script is loaded with the first plot of a page. A plot is
// redrawn when the theme or its figure changes.

import { joinCrosshair } from "./crosshair.js";
import { language, say } from "./messages.js";
import { loadScript } from "./script.js";
import { wallTime } from "./time.js";

// Plotly's dates are English; other languages get numeric dates.
const DATES = { year: "%Y", month: "%Y-%m", dayMonth: "%m-%d", dayMonthYear: "%Y-%m-%d" };
const LOCALE = language.startsWith("en") ? {} : { locale: language, locales: { [language]: { dictionary: {}, format: DATES } } };
/** Room for a date below the axis, in pixels. Plotly turns labels that do not fit, and they cover the key. */
const LABEL_WIDTH = 110;
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
  const { figure, templates } = JSON.parse(document.getElementById(element.dataset.plot).textContent);
  const area = element.querySelector("[data-plot-area]");
  try {
    await loadScript(element.dataset.plotScript);
    const xaxis = { nticks: Math.max(2, Math.floor((area.clientWidth || 800) / LABEL_WIDTH)), ...figure.layout.xaxis };
    await window.Plotly.react(area, localised(figure.data), { ...figure.layout, xaxis, template: templates[theme()] }, CONFIG);
    joinCrosshair(area);
  } catch {
    area.textContent = say("plot_failed");
  }
}

document.addEventListener("hekla:theme", () => document.querySelectorAll("[data-plot]").forEach(draw));

export function startPlots(root) {
  root.querySelectorAll("[data-plot]").forEach(draw);
}
