// Follows the event log for this page. The body names the view with its parameters, and the number of the last event
// that the page knows; the server sends renderings of what changed since. Messages:
//   hello {seq}              connected, and nothing is missing up to seq
//   fragments {seq, html}    elements with ids, as they are at seq
//   behind {events}          more is coming; 0 when all has come
//   gone                     the right to see this was lost: the page is asked for again, and says so
// After each change the document hears "hekla:live" (detail: seq and elements).

import * as connection from "./connection.js";
import { applyFragments } from "./morph.js";
import { keepOpen } from "./reconnect.js";

export function startLive() {
  const { liveQuery = "", liveSince = "" } = document.body.dataset;
  if (!liveQuery.trim()) return;
  let last = Number(liveSince) || 0;

  const received = {
    hello({ seq }) {
      last = Math.max(last, seq ?? 0);
      connection.live();
    },
    behind({ events }) {
      if (events > 0) connection.behind(events);
      else connection.live();
    },
    fragments({ seq, html }) {
      if (seq < last) return;
      last = seq;
      const elements = applyFragments(html);
      connection.live();
      document.dispatchEvent(new CustomEvent("hekla:live", { detail: { seq, elements } }));
    },
    gone() {
      socket.close();
      location.reload();
    },
  };

  connection.connecting();
  const socket = keepOpen({
    address: () => `/ws/live/?${new URLSearchParams([...new URLSearchParams(liveQuery), ["since", String(last)]])}`,
    onMessage: (message) => received[message.type]?.(message),
    onLost: connection.offline,
  });
}
