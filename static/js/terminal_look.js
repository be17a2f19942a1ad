// The colours of the terminal, and the styles that xterm writes into the page.

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The console's colours, as of the log, in the theme of now. */
export function themeOf(section) {
  const box = getComputedStyle(section.querySelector("[data-terminal-screen]"));
  const probe = document.createElement("i");
  section.append(probe);
  const theme = { background: box.backgroundColor, foreground: box.color, cursor: box.color, cursorAccent: box.backgroundColor };
  COLOURS.forEach((name, number) => {
    probe.className = `ansi-${number}`;
    theme[name] = getComputedStyle(probe).color;
    theme[`bright${name[0].toUpperCase()}${name.slice(1)}`] = theme[name];
  });
  probe.className = "terminal-selection";
  theme.selectionBackground = getComputedStyle(probe).color;
  probe.remove();
  return theme;
}

export function followTheme(change) {
  document.addEventListener("hekla:theme", change);
}

/**
 * Lets xterm style its own elements under the page's policy, which refuses style elements without this nonce, and style
 * attributes that are set as text.
 */
export function useNonce(nonce) {
  const create = document.createElement.bind(document);
  function setAttribute(name, value) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  }
  document.createElement = (name, given) => {
    const element = create(name, given);
    if (name === "style") element.nonce = nonce;
    if (name === "span") element.setAttribute = setAttribute;
    return element;
  };
}
