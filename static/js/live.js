// Follows the event log for this page. The body names the view with its parameters, and the number of the last event
// that the page knows; the server sends renderings of what changed since. Messages:
//   hello {seq, parts}             connected, and nothing is missing up to seq; of so many parts the page consists
//   fragments {part, seq, html}    elements with ids of that part, as they are at seq
//   behind {events, parts}         more is coming; 0 when all has come
//   aside {html}                   elements beside what the page shows, such as the bell
//   gone                     the right to see this was lost: the page is asked for again, and says so
// After each change the document hears "hekla:live" (detail: seq and elements).

import * as connection from "./connection.js";
import { applyFragments } from "./morph.js";
import { keepOpen } from "./reconnect.js";

export function startLive() {
  const { liveQuery = "", liveSince = "" } = document.body.dataset;
  if (!liveQuery.trim()) return;
  const first = Number(liveSince) || 0;
  let last = [first]; // of each part the number up to which nothing is missing

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

  connection.connecting();
  const socket = keepOpen({
    address: () => `/ws/live/?${new URLSearchParams([...new URLSearchParams(liveQuery), ["since", String(Math.min(...last))]])}`,
    onMessage: (message) => received[message.type]?.(message),
    onLost: connection.offline,
  });
}
