// Asks the browser for a passkey, to sign in (data-passkey="get") or to make one ("create"), and sends its answer as
// an ordinary form. Without this script, or without passkeys in the browser, the form stays hidden (WebAuthn Level 3).
"use strict";

{
  const form = document.querySelector("form[data-passkey]");
  const button = form.querySelector("button[type=button]");
  const answer = form.querySelector("input[name=passkey]");
  const status = form.querySelector("[aria-live]");
  const SAID_OF = { NotAllowedError: "cancelled", InvalidStateError: "known" };
  const SENT = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];

  const bytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  const asked = () => {
    const options = JSON.parse(form.dataset.options);
    const until = document.getElementById("time-limit")?.dataset.until;
    if (until) options.timeout = Math.min(options.timeout ?? Infinity, Math.max(0, until - Date.now()));
    options.challenge = bytes(options.challenge);
    if (options.user) options.user.id = bytes(options.user.id);
    for (const known of [...(options.allowCredentials ?? []), ...(options.excludeCredentials ?? [])]) {
      known.id = bytes(known.id);
    }
    return options;
  };
  const written = ({ id, type, response }) => {
    const parts = SENT.filter((name) => response[name]).map((name) => [name, text(response[name])]);
    const transports = response.getTransports?.();
    return JSON.stringify({ id, rawId: id, type, response: { ...Object.fromEntries(parts), transports } });
  };

  let request; // what the browser is asked at the moment
  const ask = async (more) => {
    request?.abort();
    request = new AbortController();
    const credential = await navigator.credentials[form.dataset.passkey]({
      publicKey: asked(),
      signal: request.signal,
      ...more,
    });
    answer.value = written(credential);
    form.submit();
  };

  // Passkeys stand among what the browser offers for the user name, too; without such a field nobody would see them.
  const field = document.querySelector("input[autocomplete~=webauthn]");
  const offer = async () => {
    if (!field || !(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
    await ask({ mediation: "conditional" });
  };
  const press = async () => {
    status.textContent = "";
    try {
      await ask({});
    } catch (error) {
      status.textContent = form.dataset[SAID_OF[error.name]] ?? form.dataset.failed;
      offer().catch(() => {});
    }
  };

  if (window.PublicKeyCredential && navigator.credentials) {
    form.hidden = false;
    button.addEventListener("click", press);
    // One that was refused is not offered again by itself.
    if (!button.hasAttribute("aria-describedby")) offer().catch(() => {});
  }
}
