// One crosshair for all plots of a page: the others show the values at the place that the pointer has in one of them.
// Plots share it if their axes measure the same, time or steps. Pages without a pointer, and the tables below plots, are
// not affected.

const joined = new Set();

function axisOf(area) {
  return area._fullLayout.xaxis;
}

function present() {
  for (const area of joined) if (!area.isConnected || !area._fullLayout) joined.delete(area);
  return [...joined];
}

function others(area) {
  return present().filter((other) => other !== area && axisOf(other).type === axisOf(area).type);
}

function contains(area, value) {
  const [least, most] = axisOf(area).range.map((end) => axisOf(area).r2c(end)).sort((one, other) => one - other);
  return value >= least && value <= most;
}

/** Let this drawn plot follow the others, and lead them. */
export function joinCrosshair(area) {
  if (joined.has(area)) return;
  joined.add(area);
  area.on("plotly_hover", ({ xvals: [value] }) => {
    for (const other of others(area)) {
      if (contains(other, value)) window.Plotly.Fx.hover(other, { xval: value }, "xy", true); // without an event of its own
      else window.Plotly.Fx.unhover(other);
    }
  });
  area.on("plotly_unhover", () => others(area).forEach((other) => window.Plotly.Fx.unhover(other)));
}
