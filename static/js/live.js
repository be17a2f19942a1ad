// Follows the event log for this page. The body has the view with its parameters, and the number of the last event that
// the page includes; the server sends renderings of later changes. Messages:
//   hello {seq, parts}             connected, complete up to seq; the page has this number of parts
//   fragments {part, seq, html}    elements with ids of that part, as of seq
//   behind {events, parts}         so many events are still to come; 0: complete
//   aside {html}                   elements outside the view, for example the bell
//   gone                           the permission was lost: the page reloads, and shows the refusal
// A part of the page that htmx loads can have another view, with data-live-query and data-live-since of its own.
// Each change dispatches "hekla:live" on the document (detail: seq and elements).

import * as connection from "./connection.js";
import { language } from "./messages.js";
import { applyFragments } from "./morph.js";
import { keepOpen } from "./reconnect.js";

const TOO_MANY = 4429; // the close code of the server beyond its bound of sockets for a person

export function startLive() {
  let { liveQuery = "", liveSince = "" } = document.body.dataset;
  if (!liveQuery.trim()) return;
  let first = Number(liveSince) || 0;
  let last = [first]; // for each part, the event number up to which it is complete

  function consistsOf(parts = 1) {
    last = Array.from({ length: parts }, (_, part) => last[part] ?? first);
  }

  const received = {
    hello({ seq, parts }) {
      consistsOf(parts);
      last = last.map((known) => Math.max(known, seq ?? 0));
      connection.live();
    },
    behind({ events, parts }) {
      consistsOf(parts);
      if (events > 0) connection.behind(events);
      else connection.live();
    },
    fragments({ part = 0, seq, html }) {
      if (seq < last[part]) return;
      last[part] = seq;
      const elements = applyFragments(html);
      connection.live();
      document.dispatchEvent(new CustomEvent("hekla:live", { detail: { seq, elements } }));
    },
    aside({ html }) {
      applyFragments(html);
    },
    gone() {
      socket.close();
      location.reload();
    },
  };

  document.addEventListener("htmx:load", ({ detail: { elt } }) => {
    if (!elt.dataset.liveQuery || elt.dataset.liveQuery === liveQuery) return;
    ({ liveQuery, liveSince } = elt.dataset);
    first = Number(liveSince) || 0;
    last = [first];
    socket.restart();
  });

  connection.connecting();
  const socket = keepOpen({
    address() {
      const own = { language, since: String(Math.min(...last)) };
      return `/ws/live/?${new URLSearchParams([...new URLSearchParams(liveQuery), ...Object.entries(own)])}`;
    },
    onMessage: (message) => received[message.type]?.(message),
    onLost: (code) => (code === TOO_MANY ? connection.tooMany() : connection.offline()),
  });
}
