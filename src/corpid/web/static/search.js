// Searches while a person types, by asking for the page that the search button would show; without it the button does.
"use strict";

{
  const PAUSE = 250; // milliseconds without another key
  const form = document.getElementById("search");
  const field = form.querySelector("input[type=search]");
  const status = document.getElementById("found");
  let timer, asking;
  // What the server searched for: the field may hold something else, typed before this script was loaded.
  let shown = field.defaultValue.trim();

  const search = async () => {
    const query = field.value.trim();
    if (query === shown) return;
    asking?.abort();
    asking = new AbortController();
    const where = new URL(form.action);
    where.search = new URLSearchParams({ query });
    try {
      const response = await fetch(where, { signal: asking.signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const results = page.getElementById("results");
      if (!response.ok || !results) return; // the sign-in has ended or moved on: the next click says so
      const chosen = document.querySelector("#results input:checked")?.value;
      document.getElementById("results").replaceWith(results);
      for (const each of results.querySelectorAll("input[type=radio]:not(:disabled)")) {
        if (each.value === chosen) each.checked = true;
      }
      shown = query;
      status.textContent = results.querySelector("[data-found]")?.textContent.trim() ?? "";
      rise();
    } catch {
      // the button is still there
    }
  };

  // What is found stands right below the field: where the screen is low, as above a phone's keyboard, they go to the top.
  const LOW = 480; // CSS pixels; below it the buttons do not stick to the edge either
  const seen = window.visualViewport ?? window;
  const rise = () => {
    if (document.activeElement !== field || (seen.height ?? innerHeight) >= LOW) return;
    form.scrollIntoView({ block: "start" });
  };
  field.addEventListener("focus", rise);
  seen.addEventListener("resize", rise);

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  });
  search();
  // Leaving the page ended a search under way; the browser may show the page again as it was left.
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) search();
  });
}
