// <section data-terminal="pod">: a terminal in a pod. The server keeps what it printed, by byte offset: after a lost connection
// it sends the rest, after a reload all of it. One page holds the keyboard and sets the size; the others watch.

import { copyText } from "./copy.js";
import { language, say } from "./messages.js";
import { keepOpen } from "./reconnect.js";
import { loadScript } from "./script.js";
import { followTheme, themeOf, useNonce } from "./terminal_look.js";
import { startKeys } from "./terminal_keys.js";

const SIGNED_OUT = 4401;
const TOO_MANY = 4429;
const ELSEWHERE = 1013; // another process of the console runs it: connect again, until that one answers
const OVER = new Set([SIGNED_OUT, 4403, 4404, 4410]);
const PIECE = /[^]{1,16384}/gu; // one message: whole characters of a pasted text
const SCROLLBACK_LINES = 10_000;

function bytesOf(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function ended({ reason, exit_code: code }) {
  if (reason === "exit") return say("terminal_exited", { code });
  if (reason === "pod") return say("terminal_pod_ended");
  if (reason === "idle") return say("terminal_idle");
  if (reason === "co_owner") return say("terminal_co_owner");
  if (reason === "rights") return say("terminal_no_right");
  return say("terminal_closed");
}

function named({ name, may_type: mayType }) {
  return mayType ? name : say("terminal_observes", { name });
}

/** The words above the terminal, its buttons, and who is here. */
class Frame {
  constructor(section) {
    this.section = section;
    this.part = (name) => section.querySelector(`[data-terminal-${name}]`);
  }

  tell(state, words) {
    this.section.dataset.state = state;
    if (this.part("state").textContent !== words) this.part("state").textContent = words;
    this.part("new").hidden = state !== "ended" || !this.isOwn;
    this.part("end").hidden = state !== "open" || !this.mayEnd;
    this.part("share").hidden = state !== "open" || !this.mayEnd;
    if (state !== "open") this.part("keyboard").hidden = true;
  }

  people(people, isRecorded) {
    const me = people.find((one) => one.is_me);
    this.part("recorded").hidden = !isRecorded;
    const holder = people.find((one) => one.holds);
    const mine = !holder || holder.is_own;
    const others = people.filter((one) => !one.is_own);
    this.part("people").textContent = others.length ? say("terminal_people", { names: new Intl.ListFormat(language).format(new Set(people.map(named))) }) : "";
    this.part("keyboard").hidden = !me?.may_type || (holder ? mine : this.isOwn);
    if (me && !me.may_type) this.tell("open", say("terminal_observing"));
    else this.tell("open", mine ? say("terminal_open") : say("terminal_watching", { name: holder.name }));
  }

  others(others) {
    const links = others.map(({ terminal, owner, is_own: isOwn }) => {
      const link = document.createElement("a");
      link.href = isOwn ? "?" : `?of=${encodeURIComponent(terminal)}`;
      link.textContent = isOwn ? say("terminal_own") : say("terminal_watch", { name: owner });
      return link;
    });
    this.part("others").replaceChildren(...links);
  }
}

function options(section) {
  return {
    theme: themeOf(section),
    fontFamily: getComputedStyle(section).getPropertyValue("--mono"),
    fontSize: 13,
    scrollback: SCROLLBACK_LINES,
    minimumContrastRatio: 4.5,
    linkHandler: { activate: (_event, address) => confirm(say("terminal_link", { address })) && open(address, "_blank", "noopener,noreferrer") },
  };
}

function start(section) {
  const frame = new Frame(section);
  const screen = frame.part("screen");
  const terminal = new window.Terminal(options(section));
  const fit = new window.FitAddon.FitAddon();
  const known = { id: "", offset: 0, replayed: 0, holds: false, isOver: false, isRecorded: false };
  terminal.loadAddon(fit);
  terminal.open(screen);
  terminal.textarea.setAttribute("aria-label", section.getAttribute("aria-label"));
  followTheme(() => (terminal.options.theme = themeOf(section)));

  function send(message) {
    return socket.send(message);
  }

  /** Sends what a person typed. Answers of the terminal itself to what it shows again, or watches, are none. */
  function type(text) {
    for (const data of text.match(PIECE) ?? []) send({ type: "input", data });
  }

  function fitWhenHeld() {
    if (!known.holds) return;
    fit.fit();
    send({ type: "resize", columns: terminal.cols, rows: terminal.rows });
  }

  function show({ offset, next, data }) {
    if (offset > known.offset) terminal.write(`\r\n\x1b[2m[${say("terminal_skipped", { n: offset - known.offset })}]\x1b[0m\r\n`);
    known.offset = next;
    terminal.write(bytesOf(data), () => (known.replayed = Math.max(known.replayed, next)));
  }

  const take = {
    hello(message) {
      if (message.terminal !== known.id || message.offset < known.offset) {
        terminal.reset();
        known.replayed = 0;
      }
      Object.assign(known, { id: message.terminal, offset: message.offset, end: message.end });
      frame.isOwn = message.is_own;
      frame.mayEnd = message.may_end;
      frame.part("share").href = section.dataset.share.replace("00000000-0000-0000-0000-000000000000", message.terminal.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"));
      frame.tell("open", say("terminal_open"));
      frame.others(message.others);
      terminal.resize(message.columns, message.rows);
    },
    output: show,
    size: ({ columns, rows }) => known.holds || terminal.resize(columns, rows),
    people({ people, is_recorded: isRecorded }) {
      known.holds = people.some((one) => one.is_me && one.holds);
      frame.people(people, isRecorded);
      if (isRecorded && !known.isRecorded) terminal.write(`\r\n\x1b[7m[${say("terminal_recorded")}]\x1b[0m\r\n`);
      known.isRecorded = isRecorded;
      fitWhenHeld();
    },
    full: () => frame.tell("open", say("terminal_full")),
    refused: ({ text }) => finish("refused", text),
    ended: (message) => finish("ended", ended(message)),
  };

  function finish(state, words) {
    known.isOver = true;
    terminal.options.disableStdin = true;
    frame.tell(state, words);
  }

  const socket = keepOpen({
    address: () =>
      `/ws/terminals/${encodeURIComponent(section.dataset.terminal)}/?${new URLSearchParams({ language, of: section.dataset.of, terminal: known.id, offset: known.offset })}`,
    onMessage: (message) => take[message.type]?.(message),
    onOpen: () => frame.tell("connecting", say("connecting")),
    onLost(code) {
      known.holds = false;
      if (OVER.has(code)) socket.close();
      if (known.isOver) return;
      if (OVER.has(code)) finish("refused", code === SIGNED_OUT ? say("terminal_signed_out") : say("terminal_no_right"));
      else if (code === ELSEWHERE) frame.tell("connecting", say("connecting"));
      else frame.tell("lost", code === TOO_MANY ? say("too_many_pages") : say("terminal_lost"));
    },
  });

  terminal.onData((text) => {
    const isTyped = document.activeElement === terminal.textarea && known.replayed >= Math.min(known.end ?? 0, known.offset);
    if (isTyped) type(keys.withControl(text));
  });
  const keys = startKeys(section, terminal, type);
  frame.part("keyboard").addEventListener("click", () => send({ type: "take" }) || terminal.focus());
  frame.part("end").addEventListener("click", () => send({ type: "end" }));
  frame.part("copy").addEventListener("click", () => copyText(terminal.getSelection() || textOf(terminal)));
  new ResizeObserver(fitWhenHeld).observe(screen);
  terminal.focus();
}

/** All lines that the terminal has, without trailing space. */
function textOf(terminal) {
  const buffer = terminal.buffer.active;
  const lines = Array.from({ length: buffer.length }, (_nothing, number) => buffer.getLine(number).translateToString(true));
  return lines.join("\n").trimEnd();
}

async function startTerminal() {
  const section = document.querySelector("[data-terminal]");
  if (!section) return;
  useNonce(section.dataset.nonce);
  try {
    await loadScript(section.dataset.script);
    await loadScript(section.dataset.fit);
  } catch {
    new Frame(section).tell("refused", say("terminal_not_loaded"));
    return;
  }
  start(section);
}

startTerminal();
