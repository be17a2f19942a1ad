// Icons of the sprite for elements that scripts create.

const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${document.body.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
}
