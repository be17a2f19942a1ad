// Saves a plot as a PNG file. Plotly writes it as SVG, which is drawn on a canvas below its title: Plotly's own PNG needs
// images with blob: addresses, which the content security policy forbids.

import { say } from "./messages.js";
import { showToast } from "./toast.js";

const SCALE = 2; // for sharp screens and slides
const HEAD = 36; // room for the title, in pixels
const MARGIN = 12;

function imageAt(address) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = reject;
    image.src = address;
  });
}

/** What the file is about: the title, and the time that the plot shows now. */
function nameOf(area, title) {
  const { type, range } = area._fullLayout.xaxis;
  const times = type === "date" ? range.map((at) => at.slice(0, 16).replace(":", "").replace(" ", "T")) : [];
  return [title, ...times].join(" ").replaceAll(/[^\p{L}\p{N}-]+/gu, "-");
}

async function draw(area, title) {
  const { width, height } = area._fullLayout;
  const image = await imageAt(await window.Plotly.toImage(area, { format: "svg", width, height }));
  const canvas = document.createElement("canvas");
  canvas.width = SCALE * width;
  canvas.height = SCALE * (height + HEAD);
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.body);
  context.scale(SCALE, SCALE);
  context.fillStyle = getComputedStyle(area.closest(".card") ?? document.body).backgroundColor;
  context.fillRect(0, 0, width, height + HEAD);
  context.fillStyle = style.color;
  context.font = `600 14px ${style.fontFamily}`;
  context.fillText(title, MARGIN, HEAD - MARGIN, width - 2 * MARGIN);
  context.drawImage(image, 0, HEAD, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Saves this drawn plot with its title. Says so if it cannot be drawn. */
export async function savePlot(area, title) {
  try {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await draw(area, title));
    link.download = `${nameOf(area, title)}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch {
    showToast(say("plot_not_saved"), "error");
  }
}
