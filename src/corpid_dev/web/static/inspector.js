// The inspector: shows new requests as they come, and copies a command. Without it the page is reloaded and the text selected.
"use strict";

{
  const TOGETHER = 150; // milliseconds in which several requests lead to one look
  const following = document.getElementById("following");

  const look = async () => {
    const response = await fetch(location.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const found = page.getElementById("traffic");
    const here = document.getElementById("traffic");
    if (!response.ok || !found || found.innerHTML === here.innerHTML) return;
    const focused = here.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    here.replaceWith(found);
    if (focused) [...found.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
    const choice = document.getElementById("client_id");
    if (choice !== document.activeElement) choice.replaceWith(page.getElementById("client_id"));
  };

  if (following?.dataset.events) {
    const events = new EventSource(following.dataset.events);
    let timer;
    const say = (key) => {
      following.textContent = following.dataset[key];
      following.className = key;
    };
    events.addEventListener("open", () => say("on"));
    events.addEventListener("error", () => say("off"));
    events.addEventListener("exchange", () => {
      clearTimeout(timer);
      timer = setTimeout(() => look().catch(() => say("off")), TOGETHER);
    });
    addEventListener("pagehide", () => events.close());
    addEventListener("pageshow", ({ persisted }) => {
      if (persisted) location.reload();
    });
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    const status = button.parentElement.querySelector("[role=status]");
    button.parentElement.hidden = false;
    button.addEventListener("click", async () => {
      status.textContent = ""; // so that the same words are announced again
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        status.textContent = button.dataset.done;
      } catch {
        status.textContent = button.dataset.failed;
      }
    });
  }
}
