// <div data-flow-draft="form">: the drawing of the flow that the form's text has, with controls that edit it: buttons and
// fields for the keyboard, and the pointer in the drawing. The server changes the text and draws it (`do=edit`); the text
// stays what the form sends. htmx draws what a person types.

import { say } from "./messages.js";

const DRAG_FROM_PX = 6;
const SVG = "http://www.w3.org/2000/svg";

function textOf(draft) {
  return document.getElementById(draft.dataset.flowDraft).elements.text;
}

function tell(words, isProblem = false) {
  const element = document.getElementById("flow-draft-words");
  element.className = isProblem ? "problem" : "";
  if (element.textContent !== words) element.textContent = words;
}

class FlowDraft {
  #draft;
  #drawn = null; // the text after the last edit, which is drawn already
  #last = null; // the text after the last edit or undo
  #before = []; // the texts before each edit, as long as nobody types
  #isBusy = false;

  constructor(draft) {
    this.#draft = draft;
    draft.addEventListener("click", (event) => this.#click(event));
    draft.addEventListener("change", (event) => this.#change(event));
    draft.addEventListener("keydown", (event) => this.#key(event));
    draft.addEventListener("pointerdown", (event) => this.#press(event));
    draft.addEventListener("htmx:beforeRequest", (event) => {
      if (textOf(draft).value === this.#drawn) event.preventDefault();
      else if (textOf(draft).value !== this.#last) this.#forget();
    });
    draft.addEventListener("htmx:afterSwap", () => tell(draft.querySelector("[data-flow-words]")?.textContent ?? ""));
    this.#undoButton.addEventListener("click", () => this.#undo());
  }

  get #undoButton() {
    return document.getElementById("flow-draft-undo");
  }

  #write(text) {
    const area = textOf(this.#draft);
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  #undo() {
    if (textOf(this.#draft).value !== this.#last) return this.#forget(); // what was typed since would be lost
    this.#drawn = null;
    this.#last = this.#before.pop();
    this.#write(this.#last);
    if (!this.#before.length) this.#forget();
  }

  #forget() {
    this.#before = [];
    this.#undoButton.hidden = true;
  }

  /** Let the server edit the text. `focus`: the id of the control to go on with. Returns whether it did. */
  async #edit(values, focus) {
    if (this.#isBusy) return false;
    this.#isBusy = true;
    try {
      const area = textOf(this.#draft);
      const sent = area.value;
      if (sent !== this.#last) this.#forget(); // typed since, and not drawn yet
      const body = new FormData();
      for (const [name, value] of Object.entries({ do: "edit", text: sent, ...values })) body.set(name, value);
      const headers = { "X-CSRFToken": document.body.dataset.csrf, Accept: "application/json" };
      const response = await fetch(area.form.action, { method: "POST", body, headers });
      if (!response.ok || response.redirected) throw new Error(String(response.status));
      const answer = await response.json();
      if (area.value !== sent) {
        this.#isBusy = false; // what was typed meanwhile would be lost: edit that
        return await this.#edit(values, focus);
      }
      if (answer.problem) {
        tell(answer.problem, true);
        return false;
      }
      window.htmx.trigger(this.#draft, "htmx:abort"); // a drawing of the text before
      this.#before.push(sent);
      this.#undoButton.hidden = false;
      this.#drawn = answer.text;
      this.#last = answer.text;
      this.#write(answer.text);
      const name = document.getElementById("flow-add-name");
      const begun = values.edit !== "add" && name.value !== name.defaultValue ? name.value : "";
      window.htmx.swap(this.#draft, answer.drawing, { swapStyle: window.htmx.config.defaultSwapStyle });
      if (begun) document.getElementById("flow-add-name").value = begun;
      tell(answer.words);
      document.getElementById(focus)?.focus({ preventScroll: true });
      return true;
    } catch {
      tell(say("request_failed"), true);
      return false;
    } finally {
      this.#isBusy = false;
    }
  }

  #click({ target }) {
    const placed = target.closest("[data-flow-place]");
    if (placed) {
      document.getElementById("flow-add-place").value = placed.dataset.flowPlace;
      const name = document.getElementById("flow-add-name");
      name.focus();
      name.select();
      return;
    }
    const control = target.closest("[data-flow-edit]");
    if (!control || control.matches("input")) return;
    const { flowEdit, flowStep = "", flowOther = "" } = control.dataset;
    if (flowEdit === "add") this.#add();
    else this.#edit({ edit: flowEdit, step: flowStep, other: flowOther }, flowEdit === "remove" ? "flow-add-name" : `flow-connect-${flowStep}`);
  }

  #add() {
    const [side, place = ""] = document.getElementById("flow-add-place").value.split(" ");
    const position = side === "before" ? { step: place } : { other: place };
    const name = document.getElementById("flow-add-name").value;
    this.#edit({ edit: "add", name, template: document.getElementById("flow-add-template").value, ...position }, "flow-add-name");
  }

  async #change({ target }) {
    if (target.matches('[data-flow-edit="connect"]') && target.value) {
      const step = target.dataset.flowStep;
      if (!(await this.#edit({ edit: "connect", step, other: target.value }, `flow-connect-${step}`))) target.value = "";
    } else if (target.matches("[data-flow-name]") && target.value !== target.dataset.flowName) {
      const isRenamed = await this.#edit({ edit: "rename", step: target.dataset.flowName, name: target.value }, `flow-name-${target.value.trim()}`);
      if (!isRenamed) target.setAttribute("aria-invalid", "true");
    }
  }

  #key(event) {
    if (event.key !== "Enter") return;
    if (event.target.id === "flow-add-name") this.#add();
    else if (event.target.matches('[data-flow-name], input[data-flow-edit="connect"]')) event.target.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // The pointer: from a step to the one that waits for it. On touch screens a drag scrolls.
  #press(event) {
    const box = event.target.closest("[data-step]");
    if (!box || event.button !== 0 || event.pointerType === "touch") return;
    event.preventDefault();
    const drawing = box.closest(".dag").querySelector("svg");
    const line = document.createElementNS(SVG, "line");
    line.setAttribute("class", "dag-drag");
    const at = ({ clientX, clientY }) => new DOMPoint(clientX, clientY).matrixTransform(drawing.getScreenCTM().inverse());
    const start = at(event);
    const ends = new AbortController();
    const move = (moved) => {
      if (Math.hypot(moved.clientX - event.clientX, moved.clientY - event.clientY) < DRAG_FROM_PX && !line.isConnected) return;
      const end = at(moved);
      for (const [name, value] of Object.entries({ x1: start.x, y1: start.y, x2: end.x, y2: end.y })) line.setAttribute(name, value);
      drawing.append(line);
    };
    const release = (released) => {
      ends.abort();
      line.remove();
      const to = document.elementFromPoint(released.clientX, released.clientY)?.closest("[data-step]")?.dataset.step;
      const from = box.dataset.step;
      if (to === from) document.getElementById(`flow-name-${from}`)?.focus();
      else if (to) this.#edit({ edit: "connect", step: to, other: from }, `flow-connect-${to}`);
    };
    const cancel = () => {
      ends.abort();
      line.remove();
    };
    document.addEventListener("pointermove", move, { signal: ends.signal });
    document.addEventListener("pointerup", release, { signal: ends.signal });
    document.addEventListener("pointercancel", cancel, { signal: ends.signal });
    document.addEventListener("keydown", (pressed) => pressed.key === "Escape" && cancel(), { signal: ends.signal });
  }
}

export function startFlowDrafts() {
  document.querySelectorAll("[data-flow-draft]").forEach((draft) => new FlowDraft(draft));
}
