// The place of a line in a YAML text, by its indentation: the text may be half typed, so that no parser can read it.

const LINE = /^(\s*)((?:-\s+)*)(?:-$)?(?:"?([^\s"#:][^"#:]*)"?:)?/;

/** The columns of a line: of its dashes, and of its key or text. `name`: its key. */
function parts(text) {
  const [whole, indent, dashes, name] = LINE.exec(text);
  const columns = [...dashes.matchAll(/-/g)].map((dash) => indent.length + dash.index);
  if (text.trim() === "-") return { dashes: [indent.length], column: indent.length + 2, name: undefined };
  return { dashes: columns, column: indent.length + dashes.length, name: whole ? name : undefined };
}

function isEmpty(text) {
  return /^\s*(#|$)/.test(text) || text.startsWith("---");
}

/** The path of the mapping in which the key of a line stands, such as `spec.tasks[0]`. `lines`: up to that line. */
export function placeOf(lines, column = parts(lines.at(-1)).column) {
  let { dashes } = parts(lines.at(-1));
  let path = "";
  let dash = dashes.at(-1); // of the list whose items are counted; else keys above are looked for
  let count = 0;
  for (let row = lines.length - 2; row >= 0; row--) {
    if (lines[row].startsWith("---")) break;
    if (isEmpty(lines[row])) continue;
    const above = parts(lines[row]);
    if (dash === undefined && above.column === column && above.dashes.length) {
      dash = above.dashes.at(-1); // the first key of our item
      continue;
    }
    if (dash !== undefined && above.dashes.includes(dash)) {
      count++;
      continue;
    }
    const isParent = dash === undefined ? above.column < column : above.column <= dash;
    if (!isParent || above.name === undefined) continue;
    const index = dash === undefined ? "" : `[${count}]`;
    path = `.${above.name}${index}${path}`;
    [column, dash, count] = [above.column, above.dashes.at(-1), 0];
  }
  return path.slice(1);
}
