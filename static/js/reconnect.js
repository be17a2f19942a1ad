// A websocket that reconnects: backoff from 0.3 to 10 s with jitter; at once if the network returns or the tab is shown.

const FIRST_MS = 300;
const LAST_MS = 10_000;

/** The parsed message: JSON text, or gzip-compressed JSON. */
function read(data) {
  if (typeof data === "string") return JSON.parse(data);
  return new Response(data.stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/**
 * Keeps a websocket of JSON messages open.
 * address(): the URL, called for each connection; onMessage(message); onOpen(); onLost(code): the connection ended.
 * Returns { close(), restart(), send(message) }: close ends it for good, restart opens a new connection, send drops the message
 * while there is none.
 */
export function keepOpen({ address, onMessage, onOpen = () => {}, onLost = () => {} }) {
  let socket = null;
  let timer = null;
  let tries = 0;
  let ended = false;

  function connect() {
    clearTimeout(timer);
    timer = null;
    if (ended) return;
    const url = new URL(address(), location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const own = new WebSocket(url);
    socket = own;
    own.onopen = () => onOpen();
    let before = Promise.resolve(); // decompression is asynchronous: keep the order of arrival
    own.onmessage = (event) => {
      tries = 0;
      before = Promise.all([read(event.data), before]).then(([message]) => own === socket && onMessage(message));
      before = before.catch(reportError);
    };
    own.onclose = (event) => own === socket && lost(event.code);
  }

  function lost(code) {
    socket = null;
    if (ended) return;
    onLost(code);
    if (ended) return;
    const most = Math.min(LAST_MS, FIRST_MS * 2 ** tries);
    tries += 1;
    timer = setTimeout(connect, most / 2 + Math.random() * (most / 2));
  }

  function hurry() {
    if (timer && !document.hidden) connect();
  }

  function drop() {
    const old = socket;
    socket = null;
    old?.close();
  }

  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  connect();
  return {
    close() {
      ended = true;
      clearTimeout(timer);
      removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
      drop();
    },
    restart() {
      drop();
      connect();
    },
    send(message) {
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    },
  };
}
