// Adds a button that copies to each element with data-copy, which names it. Without it: select the text.
"use strict";

{
  const status = document.getElementById("copied");

  const SHOWN = 2000; // milliseconds for which the button says that it has copied

  const copy = async (value, what, button) => {
    status.textContent = ""; // so that the same words are announced again
    try {
      await navigator.clipboard.writeText(value.textContent);
      status.textContent = `Copied: ${what}`;
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), SHOWN);
    } catch {
      status.textContent = "This browser did not copy. Select the text instead.";
    }
  };

  for (const value of document.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy ${value.dataset.copy}`);
    button.addEventListener("click", () => copy(value, value.dataset.copy, button));
    value.parentElement.append(button);
  }
}
