// Refuses too large input before it is sent: <form data-most-bytes="1048576"> limits its texts and files.

import { say } from "./messages.js";

const MIB = 1024 * 1024;

function size(control) {
  return control.type === "file" ? Math.max(0, ...[...control.files].map((file) => file.size)) : control.value.length;
}

export function startSizes() {
  document.addEventListener("input", ({ target: control }) => {
    const most = Number(control.form?.dataset.mostBytes);
    if (!most || !control.matches("textarea, input[type=file]")) return;
    const has = size(control);
    const words = { size: (has / MIB).toFixed(1), most: (most / MIB).toFixed(1) };
    control.setCustomValidity(has > most ? say("too_large", words) : "");
    if (has > most) control.reportValidity();
  });
}
