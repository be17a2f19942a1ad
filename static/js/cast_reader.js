// Reads a recording (asciicast v2) in parts of its file.

const PART_BYTES = 256 * 1024;

/** The events of a recording, one after another. next() is null at the end. */
export class CastReader {
  constructor(address, size) {
    Object.assign(this, { address, size, offset: 0, lines: [], at: 0, rest: "", decoder: new TextDecoder() });
  }

  async next() {
    for (;;) {
      while (this.at < this.lines.length) {
        const event = parsed(this.lines[this.at++]);
        if (event) return event;
      }
      if (this.offset >= this.size) return null;
      await this.read();
    }
  }

  async read() {
    const last = Math.min(this.offset + PART_BYTES, this.size) - 1;
    const answer = await fetch(this.address, { headers: { Range: `bytes=${this.offset}-${last}` } });
    if (answer.status !== 206) throw new Error(String(answer.status));
    const data = await answer.arrayBuffer();
    this.offset += data.byteLength;
    if (!data.byteLength) this.size = this.offset;
    const lines = (this.rest + this.decoder.decode(data, { stream: true })).split("\n");
    this.rest = lines.pop();
    this.lines = lines;
    this.at = 0;
  }
}

/** { at, code, data } of a line; null for the header, and for a damaged line. */
function parsed(line) {
  try {
    const [at, code, data] = JSON.parse(line);
    return Number.isFinite(at) && typeof data === "string" ? { at, code, data } : null;
  } catch {
    return null;
  }
}

/** The nearest number in this range. */
export function within(value, [low, high]) {
  return Math.min(Math.max(value, low), high);
}

/** Seconds as 2:05. */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
