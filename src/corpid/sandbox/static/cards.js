// Keeps the codes of the start page current, and copies what stands on a card. Without it: reload, and select.
"use strict";

{
  const cards = document.querySelector(".persons");
  const status = document.getElementById("copied");
  let left = Number(cards.dataset.secondsLeft);
  let at = Date.now();

  const copy = async (value, what) => {
    status.textContent = ""; // so that the same words are announced again
    try {
      await navigator.clipboard.writeText(value.textContent);
      status.textContent = `Copied: ${what}`;
    } catch {
      status.textContent = "This browser did not copy. Select the text instead.";
    }
  };

  for (const value of cards.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy ${value.dataset.copy}`);
    button.addEventListener("click", () => copy(value, value.dataset.copy));
    value.parentElement.append(button);
  }

  // The server's clock decides: it says how long the codes last, and which follow.
  const renew = async () => {
    const answer = await fetch(cards.dataset.codes).catch(() => null);
    if (!answer?.ok) return;
    const found = await answer.json();
    for (const code of cards.querySelectorAll("[data-code]")) code.textContent = found.codes[code.dataset.code] ?? "";
    left = found.seconds_left;
    at = Date.now();
  };
  const tick = async () => {
    const now = left - Math.floor((Date.now() - at) / 1000);
    if (now <= 0) await renew();
    const shown = Math.max(1, left - Math.floor((Date.now() - at) / 1000));
    for (const each of document.querySelectorAll("[data-seconds]")) each.textContent = `${shown} s`;
    setTimeout(tick, 1000);
  };
  setTimeout(tick, 1000);
}
