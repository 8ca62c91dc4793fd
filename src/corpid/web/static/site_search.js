// The key / leads to the field that searches everything, as long as nothing is being typed.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  const field = document.getElementById("site-search");
  field.closest("details")?.setAttribute("open", "");
  field.focus();
});
