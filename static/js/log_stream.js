// The bytes of one pod's log, in order, each once: it requests them from its current offset, cuts overlaps, and
// reconnects after a gap.
// Messages: {"type": "log", "offset": first byte, "next": byte after the last, "text": …, "complete": it will not grow,
// "times": [[line, ms], …], when its lines began to arrive: from that line on, counted from 0; 0 ms: unknown}.

import { keepOpen } from "./reconnect.js";

const REFUSED = new Set([4001, 4003, 4004, 4401, 4403, 4404]);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The text without its first `bytes` bytes. */
export function without(text, bytes) {
  return bytes > 0 ? decoder.decode(encoder.encode(text).subarray(bytes)) : text;
}

/**
 * Follows a pod's log. onText(text, times), onSkipped(bytes): the server started after the requested offset, onState("live" |
 * "lost" | "refused" | "complete"). Returns { close() }.
 */
export function followLog(pod, { onText, onSkipped, onState }) {
  let offset = 0;
  let begun = false;

  function take({ offset: from, next, text, complete, times = [] }) {
    if (from > offset && begun) return socket.restart();
    if (from > offset) onSkipped(from - offset);
    if (next > offset || !begun) {
      onText(from < offset ? without(text, offset - from) : text, from < offset ? [] : times);
      offset = Math.max(offset, next);
      begun = true;
    }
    if (complete) socket.close();
    return onState(complete ? "complete" : "live");
  }

  const socket = keepOpen({
    address: () => `/ws/logs/${encodeURIComponent(pod)}/?offset=${offset}`,
    onMessage: (message) => message.type === "log" && take(message),
    onOpen: () => onState("live"),
    onLost(code) {
      if (REFUSED.has(code)) socket.close();
      onState(REFUSED.has(code) ? "refused" : "lost");
    },
  });
  return socket;
}
