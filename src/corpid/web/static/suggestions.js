// Offers what the server finds while a person types, by asking for the page that the form would show.
"use strict";

{
  const PAUSE = 250; // milliseconds without another key
  const { id } = document.currentScript.previousElementSibling;
  const field = document.querySelector(`input[list="${id}"]`);
  let timer, asking;

  const offer = async () => {
    asking?.abort();
    asking = new AbortController();
    const where = new URL(field.form.action);
    where.search = new URLSearchParams({ [field.name]: field.value });
    try {
      const response = await fetch(where, { signal: asking.signal, redirect: "error" });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const found = page.getElementById(id); // none if only one person is left: the form takes them
      if (found) document.getElementById(id).replaceWith(found);
    } catch (error) {
      // The sign-in has ended or moved on: the next click says so.
      if (error.name !== "AbortError") field.removeEventListener("input", wait);
    }
  };
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(offer, PAUSE);
  };
  field.addEventListener("input", wait);
}
