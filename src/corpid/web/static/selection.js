// Ticks the rows of a list by its one box, says how many are selected, and names those that are left out of the whole list.
"use strict";

for (const form of document.querySelectorAll("form.selection")) {
  const all = form.elements.namedItem("all");
  const rows = [...form.querySelectorAll("td.select input")];
  const said = form.querySelector(".selected");
  const total = Number(said.dataset.total) || rows.length;
  const show = () => {
    const left = rows.filter((row) => !row.checked).length;
    const count = (all?.checked ? total : rows.length) - left;
    said.textContent = count ? said.dataset.text.replace("{count}", count).replace("{total}", total) : "";
  };
  form.addEventListener("change", (event) => {
    if (event.target === all) for (const row of rows) row.checked = all.checked;
    else if (all && rows.length === total) all.checked = rows.every((row) => row.checked);
    show();
  });
  form.addEventListener("formdata", (event) => {
    for (const row of all?.checked ? rows : []) if (!row.checked) event.formData.append(row.name.replace("select-", "except-"), "yes");
  });
  show();
}
