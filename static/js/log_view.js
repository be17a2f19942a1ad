// The log view of components/log.html: loads a log when the view comes near the screen, and follows its end until the
// person scrolls up.

import { copyText } from "./copy.js";
import { LogLines } from "./log_lines.js";
import { LogSearch } from "./log_search.js";
import { followLogs } from "./log_many.js";
import { followLog } from "./log_stream.js";
import { say } from "./messages.js";

const DRAW_MS = 40; // text that arrives within this time is rendered together
const NEAR_END = 24; // pixels
const NEAR_SIGHT = "800px";
const SENTENCES = { lost: "log_reconnecting", refused: "log_refused", complete: "log_complete" };

function podsOf({ dataset }) {
  const names = (dataset.logNames ?? "").split(",");
  return dataset.log.split(",").map((pod, place) => ({ pod, name: names[place] ?? pod }));
}

class LogView {
  constructor(root) {
    this.root = root;
    this.part = (name) => root.querySelector(`[data-log-${name}]`);
    this.box = this.part("box");
    this.lines = new LogLines(this.part("lines"));
    this.search = new LogSearch(this.lines);
    this.waiting = "";
    this.state = "live";
    this.timer = null;
    this.following = true;
    this.lastTop = 0;
    this.listen();
    this.tellState();
    this.stream = this.open({
      onText: (text) => this.take(text),
      onSkipped: () => this.part("older").removeAttribute("hidden"),
      onState: (state) => this.tell(state),
    });
  }

  /** Opens the log of one pod, or the merged logs if the view names several. */
  open(handlers) {
    const pods = podsOf(this.root);
    return pods.length > 1 ? followLogs(pods, handlers) : followLog(this.root.dataset.log, handlers);
  }

  listen() {
    const on = (name, event, action) => this.part(name).addEventListener(event, action);
    this.box.addEventListener("scroll", () => this.onScroll(), { passive: true });
    on("follow", "click", () => this.follow());
    on("search", "input", (event) => this.find(() => this.search.search(event.target.value)));
    on("search", "keydown", (event) => event.key === "Enter" && this.find(() => this.search.step(event.shiftKey ? -1 : 1)));
    on("next", "click", () => this.find(() => this.search.step(1)));
    on("previous", "click", () => this.find(() => this.search.step(-1)));
    on("wrap", "click", (event) => this.wrap(event.currentTarget));
    on("copy", "click", () => copyText(this.lines.text));
    this.part("level")?.addEventListener("change", (event) => this.showLevel(event.target.value));
    this.part("full")?.addEventListener("click", () => this.fullScreen());
    this.root.addEventListener("fullscreenchange", () => this.tellFullScreen());
    addEventListener("hashchange", () => this.goToLine());
  }

  take(text) {
    this.waiting += text;
    this.timer ??= setTimeout(() => this.draw(), DRAW_MS);
  }

  draw() {
    this.timer = null;
    this.lines.append(this.waiting);
    this.waiting = "";
    this.tellOlder();
    this.tellState();
    if (this.following) this.toEnd();
    if (!this.aimed) this.goToLine();
  }

  tellOlder() {
    if (!this.lines.dropped) return;
    this.part("older").hidden = false;
    this.part("older").textContent = say("log_older", { n: this.lines.dropped });
  }

  tell(state) {
    if (!this.root.isConnected) this.stream?.close();
    this.state = state;
    this.tellState();
  }

  tellState() {
    const nothing = !this.lines.count && !this.waiting;
    const live = nothing ? "log_waiting" : this.following ? "following" : "log_paused";
    this.part("state").textContent = say(this.state === "live" ? live : SENTENCES[this.state]);
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    this.lastTop = this.box.scrollTop;
  }

  onScroll() {
    const atEnd = this.box.scrollHeight - this.box.clientHeight - this.box.scrollTop < NEAR_END;
    if (atEnd) this.setFollowing(true);
    else if (this.box.scrollTop < this.lastTop) this.setFollowing(false);
    this.lastTop = this.box.scrollTop;
  }

  setFollowing(following) {
    this.following = following;
    this.part("follow").hidden = following;
    this.tellState();
  }

  follow() {
    this.setFollowing(true);
    this.toEnd();
  }

  find(action) {
    action();
    const { found, at, wanted } = this.search;
    if (found.length) this.setFollowing(false);
    const answer = found.length ? say("log_found", { i: at + 1, n: found.length }) : say("log_not_found");
    this.part("found").textContent = wanted ? answer : "";
  }

  wrap(button) {
    const wrapped = this.root.classList.toggle("log-wrapped");
    button.setAttribute("aria-pressed", String(wrapped));
    if (this.following) this.toEnd();
  }

  /** Shows only the lines of this level and above; "": all. */
  showLevel(level) {
    this.root.dataset.level = level;
    if (this.following) this.toEnd();
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.();
  }

  tellFullScreen() {
    this.part("full").setAttribute("aria-pressed", String(document.fullscreenElement === this.root));
    if (this.following) this.toEnd();
  }

  goToLine() {
    const row = this.lines.row(Number(/^#L(\d+)$/.exec(location.hash)?.[1]));
    if (!row) return;
    this.aimed = true;
    this.setFollowing(false);
    this.root.querySelector(".log-target")?.classList.remove("log-target");
    row.element.classList.add("log-target");
    row.element.scrollIntoView({ block: "center" });
  }
}

const inSight = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      inSight.unobserve(target);
      new LogView(target);
    }
  },
  { rootMargin: NEAR_SIGHT }, // so that it is loaded before it is visible
);

export function startLogs(root) {
  for (const element of root.querySelectorAll('[data-log]:not([data-log=""], [data-log-started])')) {
    element.dataset.logStarted = "yes";
    inSight.observe(element);
  }
}
