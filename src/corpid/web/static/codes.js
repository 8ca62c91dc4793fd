// Keeps recovery codes: on the clipboard, in a file, on paper. Without it they can be selected and printed all the same.
"use strict";

{
  const row = document.querySelector(".keep");
  const status = row.querySelector("[aria-live]");
  const codes = [...document.querySelectorAll(".codes code")].map((code) => code.textContent.trim()).join("\n");

  const keep = {
    copy: async ({ dataset }) => {
      status.textContent = ""; // so that the same words are announced again
      try {
        await navigator.clipboard.writeText(codes);
        status.textContent = dataset.done;
      } catch {
        status.textContent = dataset.failed;
      }
    },
    download: () => {
      const file = URL.createObjectURL(new Blob([`${row.dataset.title}\n\n${codes}\n`], { type: "text/plain" }));
      Object.assign(document.createElement("a"), { href: file, download: "recovery-codes.txt" }).click();
      setTimeout(() => URL.revokeObjectURL(file), 60000);
    },
    print: () => print(),
  };

  row.hidden = false;
  row.addEventListener("click", ({ target }) => keep[target.dataset.keep]?.(target));
}
