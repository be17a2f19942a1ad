// Only on the page of a recording: <section data-replay="address"> plays it. The file is read in parts, so that a long recording
// costs no more memory than a short one: to go back, it begins again and shows everything up to there at once.

import { CastReader, clock, within } from "./cast_reader.js";
import { copyText } from "./copy.js";
import { say } from "./messages.js";
import { loadScript } from "./script.js";
import { followTheme, themeOf, useNonce } from "./terminal_look.js";

const FONT_PX = [4, 15];
const SIDES = [2, 500];
const PAUSE_SECONDS = 2; // longer pauses are skipped
const [TICK_MS, STEP_SECONDS] = [40, 5];

class Player {
  constructor(section) {
    this.section = section;
    this.part = (name) => section.querySelector(`[data-replay-${name}]`);
    this.screen = section.querySelector("[data-terminal-screen]");
    this.size = { columns: Number(section.dataset.columns), rows: Number(section.dataset.rows) };
    this.seconds = Number(section.dataset.seconds);
    this.speed = 1;
    this.until = Infinity;
    this.work = Promise.resolve(); // one seek or tick at a time
    this.terminal = new window.Terminal({ theme: themeOf(section), fontFamily: getComputedStyle(section).getPropertyValue("--mono"), fontSize: 13, scrollback: 0, disableStdin: true, cols: this.size.columns, rows: this.size.rows, linkHandler: { activate: () => {} } });
    this.terminal.open(this.screen);
    this.terminal.textarea.disabled = true;
    followTheme(() => (this.terminal.options.theme = themeOf(section)));
    const seek = this.part("seek");
    seek.max = this.seconds;
    seek.step = Math.max(0.1, this.seconds / 200);
    this.restart();
  }

  restart() {
    this.reader = new CastReader(this.section.dataset.replay, Number(this.section.dataset.size));
    this.now = 0;
    this.event = null;
    this.isOver = false;
    this.terminal.reset();
    this.resize(this.size);
  }

  resize({ columns, rows }) {
    if (columns && rows) this.terminal.resize(within(columns, SIDES), within(rows, SIDES));
    this.fit();
  }

  /** Scales the recorded size to the page. */
  fit() {
    const width = this.screen.querySelector(".xterm-screen")?.offsetWidth;
    const room = this.screen.clientWidth - 20;
    if (!width || room <= 0) return;
    const size = within(Math.floor((10 * this.terminal.options.fontSize * room) / width) / 10, FONT_PX);
    if (Math.abs(size - this.terminal.options.fontSize) >= 0.1) this.terminal.options.fontSize = size;
  }

  apply({ code, data }) {
    if (code === "o") return new Promise((done) => this.terminal.write(data, done));
    const [columns, rows] = code === "r" ? data.split("x").map(Number) : [];
    if (code === "r") this.resize({ columns, rows });
    if (code === "m") this.part("state").textContent = say("replay_joined", { name: data });
    return null;
  }

  /** Shows everything up to this time. */
  async show(time) {
    if (time < this.now) this.restart();
    this.now = time;
    while (!this.isOver) {
      this.event ??= await this.reader.next();
      if (!this.event) this.isOver = true;
      else if (this.event.at > time) break;
      else {
        await this.apply(this.event);
        this.event = null;
      }
    }
    this.tell();
  }

  tell() {
    if (document.activeElement !== this.part("seek") || this.isPlaying) this.part("seek").value = this.now;
    this.part("seek").setAttribute("aria-valuetext", clock(this.now));
    this.part("time").textContent = `${clock(this.now)} / ${clock(Math.max(this.seconds, this.now))}`;
  }

  seek(time) {
    this.part("state").textContent = "";
    return this.queue(() => this.show(within(time, [0, Math.max(this.seconds, 0)])));
  }

  queue(work) {
    this.work = this.work.then(work).catch(() => {
      this.pause();
      this.part("state").textContent = say("replay_failed");
    });
    return this.work;
  }

  async tick(elapsed) {
    if (!this.isPlaying) return;
    let time = this.now + elapsed * this.speed;
    const gap = this.event ? this.event.at - time : 0;
    if (gap > PAUSE_SECONDS && this.part("skip").checked) time = this.event.at;
    await this.show(Math.min(time, this.until));
    if (this.isOver || this.now >= this.until) {
      this.pause();
      this.part("state").textContent = this.isOver ? say("replay_end") : "";
    }
  }

  play() {
    if (this.isOver) this.seek(0);
    if (this.now >= this.until) this.until = Infinity;
    this.isPlaying = true;
    this.label();
    let before = performance.now();
    const again = async () => {
      if (!this.isPlaying) return;
      const elapsed = performance.now() - before;
      before += elapsed;
      await this.queue(() => this.tick(elapsed / 1000));
      this.timer = setTimeout(again, TICK_MS);
    };
    clearTimeout(this.timer);
    again();
  }

  pause() {
    this.isPlaying = false;
    clearTimeout(this.timer);
    this.label();
  }

  toggle() {
    return this.isPlaying ? this.pause() : this.play();
  }

  label() {
    this.part("play").setAttribute("aria-pressed", String(Boolean(this.isPlaying)));
    this.part("play").querySelector("span").textContent = this.isPlaying ? say("replay_pause") : say("replay_play");
  }

  /** What the address says: #t=12.3&to=20 */
  follow() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const [begin, end] = [Number(wanted.get("t")), Number(wanted.get("to"))];
    this.until = end > begin ? end : Infinity;
    if (!(begin > 0)) return;
    this.pause();
    this.seek(begin);
    this.section.scrollIntoView({ block: "nearest" });
  }

  press(event) {
    if (event.target.closest("input, select, button, a")) return;
    if (event.key === " ") this.toggle();
    else if (event.key === "ArrowLeft") this.seek(this.now - STEP_SECONDS);
    else if (event.key === "ArrowRight") this.seek(this.now + STEP_SECONDS);
    else if (event.key === "Home") this.seek(0);
    else return;
    event.preventDefault();
  }

  start() {
    this.part("play").addEventListener("click", () => this.toggle());
    this.part("seek").addEventListener("input", (event) => this.seek(Number(event.target.value)));
    this.part("speed").addEventListener("change", (event) => (this.speed = Number(event.target.value)));
    this.part("link").addEventListener("click", () => copyText(`${location.origin}${location.pathname}#t=${this.now.toFixed(1)}`));
    for (const button of document.querySelectorAll("[data-replay-mark]")) {
      button.addEventListener("click", () => (document.querySelector(`#replay-cut [name=${button.dataset.replayMark}]`).value = this.now.toFixed(1)));
    }
    this.section.addEventListener("keydown", (event) => this.press(event));
    addEventListener("hashchange", () => this.follow());
    new ResizeObserver(() => this.fit()).observe(this.screen);
    const inner = this.screen.querySelector(".xterm-screen"); // the scrollable part around it keeps the size of an earlier font
    new ResizeObserver(() => (inner.closest(".xterm").style.height = `${inner.offsetHeight}px`)).observe(inner);
    this.pause();
    this.part("play").disabled = false;
    this.seek(0);
    this.follow();
  }
}

async function startReplay() {
  const section = document.querySelector("[data-replay]");
  if (!section) return;
  useNonce(section.dataset.nonce);
  try {
    await loadScript(section.dataset.script);
  } catch {
    section.querySelector("[data-replay-state]").textContent = say("terminal_not_loaded");
    return;
  }
  new Player(section).start();
}

startReplay();
