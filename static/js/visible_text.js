// Bidirectional controls as ⟨U+202E⟩ in names that come as JSON, as the server shows them in HTML (lib/text.py).

const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function visible(text) {
  return text.replace(CONTROLS, (control) => `⟨U+${control.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
