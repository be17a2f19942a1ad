// Adds and removes rows of a form, numbered for Django's formsets (prefix-0-name, prefix-1-name, …).

function total(box) {
  return document.getElementById(`id_${box.dataset.rows}-TOTAL_FORMS`);
}

function visibleRows(box) {
  return [...box.querySelectorAll("[data-row]")].filter((row) => !row.hidden);
}

function renumber(box) {
  const prefix = box.dataset.rows;
  const pattern = new RegExp(`(^|_)${prefix}-\\d+-`);
  [...box.querySelectorAll("[data-row]")].forEach((row, index) => {
    for (const element of row.querySelectorAll("[name], [id], [for], [aria-describedby]")) {
      for (const attribute of ["name", "id", "for", "aria-describedby", "aria-errormessage"]) {
        const value = element.getAttribute(attribute);
        if (value) element.setAttribute(attribute, value.replace(pattern, `$1${prefix}-${index}-`));
      }
    }
  });
  visibleRows(box).forEach((row, index) => row.querySelectorAll("[data-row-number]").forEach((place) => (place.textContent = index + 1)));
  const count = total(box);
  if (count) count.value = box.querySelectorAll("[data-row]").length;
  const add = box.querySelector("[data-row-add]");
  if (add) add.disabled = visibleRows(box).length >= Number(box.dataset.rowsMax);
  for (const button of box.querySelectorAll("[data-row-remove]")) button.disabled = visibleRows(box).length <= Number(box.dataset.rowsMin ?? 1);
}

export function addRow(box) {
  const empty = box.querySelector("[data-rows-empty]");
  const number = box.querySelectorAll("[data-row]").length;
  const holder = document.createElement("template");
  holder.innerHTML = empty.innerHTML.replaceAll("__prefix__", String(number));
  const row = holder.content.querySelector("[data-row]");
  box.querySelector("[data-rows-list]").append(row);
  renumber(box);
  window.htmx?.process(row);
  return row;
}

function removeRow(box, row) {
  const mark = row.querySelector('input[name$="-DELETE"]');
  if (mark) {
    mark.checked = true;
    row.hidden = true;
  } else row.remove();
  renumber(box);
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

export function startRows() {
  document.querySelectorAll("[data-rows]").forEach(renumber);
  document.addEventListener("click", (event) => {
    const box = event.target.closest("[data-rows]");
    if (!box) return;
    if (event.target.closest("[data-row-add]")) addRow(box).querySelector("input, select, textarea")?.focus();
    else if (event.target.closest("[data-row-remove]")) removeRow(box, event.target.closest("[data-row]"));
  });
}
