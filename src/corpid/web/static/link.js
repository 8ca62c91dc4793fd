// A link has its code in the fragment, which no server is sent. Take it out of the address and the history, and post it.
"use strict";

{
  const CODE = /^[0-9a-z]{20}$/i; // an error's link to its field is no code
  const form = document.getElementById("link-code");
  const opening = document.getElementById("opening");

  const follow = () => {
    const code = location.hash.replace(/[^0-9a-z]/gi, "");
    if (!CODE.test(code)) return;
    history.replaceState(null, "", location.pathname);
    form.elements.code.value = code;
    form.elements.followed.value = "yes";
    form.hidden = true;
    opening.hidden = false;
    form.submit();
    form.elements.code.value = form.elements.followed.value = ""; // for whoever comes back
  };

  addEventListener("hashchange", follow); // another link, opened in the same tab
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    form.hidden = false;
    opening.hidden = true;
  });
  follow();
}
