// The inspector: shows new requests as they come, and copies a command. Without it the page is reloaded and the text selected.
// The readiness report: shows how far a check is. Without it the page loads again every few seconds.
"use strict";

{
  const TOGETHER = 150; // milliseconds in which several requests lead to one look
  const APART = 2000; // milliseconds between two looks at a check
  const following = document.getElementById("following");

  const fetched = async () => {
    const response = await fetch(location.href);
    if (!response.ok) throw new Error(response.status);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };

  const look = async () => {
    const page = await fetched();
    const found = page.getElementById("traffic");
    const here = document.getElementById("traffic");
    if (!found || found.innerHTML === here.innerHTML) return;
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

  const run = () => document.getElementById("following-run");
  const follow = async () => {
    const page = await fetched().catch(() => null);
    const found = page?.getElementById("following-run");
    if (page && !found) return location.reload(); // it has ended
    if (found && found.innerHTML !== run().innerHTML) run().replaceWith(found);
    setTimeout(follow, APART);
  };
  if (run()) setTimeout(follow, APART);

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
