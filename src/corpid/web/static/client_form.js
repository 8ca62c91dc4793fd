// Checks a client's form while one types, by asking for the page that the Check button would show; the rules are there.
"use strict";

{
  const PAUSE = 600; // milliseconds without another key
  const form = document.getElementById("client-form");
  const touched = new Set();
  let timer, asking;

  // Below a field: its error and advice of the checked page. An older error above it goes.
  const show = (page, name) => {
    const found = document.getElementById(`found-${name}`);
    const field = document.getElementById(name);
    if (!found || !field) return;
    const error = page.getElementById(`${name}-error`);
    const said = [error, ...(page.getElementById(`found-${name}`)?.children ?? [])].filter(Boolean);
    if (document.getElementById(`${name}-error`)?.closest(".advice") == null) {
      document.getElementById(`${name}-error`)?.remove();
    }
    found.replaceChildren(...said);
    field.closest(".field")?.classList.toggle("field-wrong", Boolean(error));
    field.toggleAttribute("aria-invalid", Boolean(error));
    if (error) field.setAttribute("aria-invalid", "true");
    const described = [`${name}-hint`, `${name}-error`].filter((id) => document.getElementById(id));
    if (described.length) field.setAttribute("aria-describedby", described.join(" "));
    else field.removeAttribute("aria-describedby");
  };

  const check = async () => {
    asking?.abort();
    asking = new AbortController();
    const sent = new URLSearchParams(new FormData(form));
    sent.set("decision", "check");
    try {
      const response = await fetch(form.action, { method: "POST", body: sent, signal: asking.signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const keys = page.getElementById("jwks");
      if (!keys) return; // the page is no longer open to this browser: the button says so
      for (const name of touched) show(page, name);
      // Private members are gone, PEM text has become a key set.
      if (form.elements.jwks.value.trim() === sent.get("jwks").trim()) form.elements.jwks.value = keys.value;
    } catch {
      // the button is still there
    }
  };

  form.addEventListener("input", ({ target }) => {
    touched.add(target.name.split(":")[0]);
    if (target.name.startsWith("jwks")) touched.add("jwks").add("jwks_uri");
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  });
}
