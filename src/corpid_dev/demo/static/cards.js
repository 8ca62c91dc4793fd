// Keeps the codes of the start page current. Without it: reload.
"use strict";

{
  const cards = document.querySelector(".persons");
  let left = Number(cards.dataset.secondsLeft);
  let at = Date.now();

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
