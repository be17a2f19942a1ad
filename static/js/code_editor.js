// An editor (CodeMirror) in the place of a text area. The text area stays what the form sends, and drafts and previews read
// it. <textarea data-nonce data-hint>: a nonce for its styles, and a line about its keys.

function look({ EditorView, HighlightStyle, syntaxHighlighting, tags }) {
  const colours = HighlightStyle.define([
    { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--accent)" },
    { tag: [tags.string, tags.special(tags.string), tags.attributeValue], color: "var(--done)" },
    { tag: [tags.comment, tags.lineComment], color: "var(--muted)", fontStyle: "italic" },
    { tag: [tags.meta, tags.keyword, tags.labelName, tags.typeName], color: "var(--borrowed)" },
  ]);
  const box = EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "var(--surface)" },
    ".cm-content": { caretColor: "var(--text)", fontFamily: "var(--mono)" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--accent) 28%, transparent)" },
    ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "var(--radius)" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
    ".cm-tooltip .cm-diagnostic": { borderLeftColor: "var(--failed)" },
  });
  return [box, syntaxHighlighting(colours)];
}

function common(CM, area, extensions) {
  const label = document.querySelector(`label[for="${area.id}"]`)?.firstChild?.textContent.trim() ?? "";
  let isTyping = false;
  // Tab indents only once something was typed: whoever only passes by with Tab goes on.
  const tab = { key: "Tab", run: (view) => CM.acceptCompletion(view) || (isTyping && CM.indentWithTab.run(view)) };
  const shiftTab = { key: "Shift-Tab", run: (view) => isTyping && CM.indentWithTab.shift(view) };
  const changed = ({ docChanged, state, view }) => {
    if (!docChanged) return;
    isTyping = view.hasFocus;
    const text = state.doc.toString();
    if (area.value.replaceAll("\r\n", "\n") === text) return;
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return [
    CM.EditorView.cspNonce.of(area.dataset.nonce),
    CM.keymap.of([tab, shiftTab]),
    ...extensions,
    CM.lineNumbers(),
    CM.highlightActiveLine(),
    CM.highlightActiveLineGutter(),
    CM.drawSelection(),
    CM.history(),
    CM.bracketMatching(),
    CM.indentOnInput(),
    CM.keymap.of([...CM.defaultKeymap, ...CM.historyKeymap]),
    CM.EditorView.lineWrapping,
    CM.EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": `${area.id}_helptext ${area.id}_hint`, spellcheck: "false" }),
    CM.EditorView.domEventHandlers({ blur: () => void (isTyping = false) }),
    CM.EditorView.updateListener.of(changed),
    ...look(CM),
  ];
}

/** Shows the editor instead of the text area, and returns its view. The extensions come before the common ones. */
export function mountEditor(CM, area, extensions) {
  const view = new CM.EditorView({ doc: area.value, extensions: common(CM, area, extensions) });
  area.after(view.dom);
  area.classList.add("hidden-text");
  area.tabIndex = -1;
  area.setAttribute("aria-hidden", "true");
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.(`label[for="${area.id}"], a[href="#${area.id}"]`)) return; // or a link to its problem
    event.preventDefault();
    view.focus();
  });
  area.addEventListener("input", () => {
    const text = view.state.doc.toString();
    if (area.value.replaceAll("\r\n", "\n") !== text) view.dispatch({ changes: { from: 0, to: text.length, insert: area.value } });
  });
  const hint = document.createElement("p");
  hint.className = "help";
  hint.id = `${area.id}_hint`;
  hint.textContent = area.dataset.hint;
  area.closest(".field").querySelector(".field-notes").prepend(hint);
  return view;
}
