// The key / leads to the field that searches everything, as long as nothing is being typed and this browser keeps it on.
"use strict";

{
  const field = document.getElementById("site-search");
  const slash = document.getElementById("search-key");
  const KEPT = "search-key";

  const mark = () => {
    if (slash.checked) field.setAttribute("aria-keyshortcuts", "/");
    else field.removeAttribute("aria-keyshortcuts");
  };

  slash.checked = localStorage.getItem(KEPT) !== "off";
  slash.parentElement.hidden = false;
  slash.addEventListener("change", () => {
    localStorage.setItem(KEPT, slash.checked ? "on" : "off");
    mark();
  });
  mark();

  document.addEventListener("keydown", (event) => {
    if (!slash.checked || event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    field.closest("details")?.setAttribute("open", "");
    field.focus();
  });
}
