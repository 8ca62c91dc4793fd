// Adds a button that copies to each element with data-copy, which names it, and to each fact that is code. Without it:
// select the text.
"use strict";

{
  const texts = {
    label: "Copy", copied: "Copied", failed: "This browser did not copy. Select the text instead.",
    ...document.currentScript.dataset,
  };
  const status = document.getElementById("copied");

  const SHOWN = 2000; // milliseconds for which the button says that it has copied

  const copy = async (value, what, button) => {
    status.textContent = ""; // so that the same words are announced again
    try {
      await navigator.clipboard.writeText(value.textContent);
      status.textContent = `${texts.copied}: ${what}`;
      button.textContent = texts.copied;
      setTimeout(() => (button.textContent = texts.label), SHOWN);
    } catch {
      status.textContent = texts.failed;
    }
  };

  for (const value of document.querySelectorAll("[data-copy], .facts.copies dd > code:only-of-type")) {
    const what = value.dataset.copy ?? value.closest("div").querySelector("dt").textContent;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "copy", textContent: texts.label });
    button.setAttribute("aria-label", `${texts.label} ${what}`);
    button.addEventListener("click", () => copy(value, what, button));
    value.parentElement.append(button);
  }
}
