// Keys of a terminal that a phone does not have, and those that the page keeps for itself.

import { copyText } from "./copy.js";

const FIXED = { escape: "\x1b", tab: "\t" };
const ARROWS = { up: "A", down: "B", right: "C", left: "D" };

/** The control character of a key: Ctrl+C of "c". */
function controlOf(text) {
  const code = text.toUpperCase().charCodeAt(0);
  return text.length === 1 && code >= 63 && code < 96 ? String.fromCharCode(code === 63 ? 127 : code & 31) : text;
}

/** Starts the keys below the terminal. type(text) sends. Returns { withControl(text) }: the text, as Ctrl changes it. */
export function startKeys(section, terminal, type) {
  const control = section.querySelector("[data-terminal-key=control]");

  function setControl(isOn) {
    control?.setAttribute("aria-pressed", String(isOn));
  }

  function press(key) {
    if (key === "control") return setControl(control.getAttribute("aria-pressed") !== "true");
    const arrow = terminal.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[";
    return type(FIXED[key] ?? `${arrow}${ARROWS[key]}`);
  }

  for (const button of section.querySelectorAll("[data-terminal-key]")) {
    button.addEventListener("pointerdown", (event) => event.preventDefault()); // the terminal stays focused, and the phone's keyboard open
    button.addEventListener("click", () => press(button.dataset.terminalKey));
  }

  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type !== "keydown") return true;
    if (event.shiftKey && event.key === "Escape") section.querySelector("[data-terminal-copy]").focus();
    else if (event.ctrlKey && event.shiftKey && event.code === "KeyC") copyText(terminal.getSelection());
    else return !(event.ctrlKey && event.shiftKey && event.code === "KeyV"); // the browser pastes
    event.preventDefault();
    return false;
  });

  return {
    withControl(text) {
      if (control?.getAttribute("aria-pressed") !== "true") return text;
      setControl(false);
      return controlOf(text);
    },
  };
}
