// Makes the pages kinder; everything works without it, and the server is right in any case (D15).
"use strict";

const SENT_FOR = 10; // seconds in which a second click does nothing

// One press, one request.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  event.submitter?.setAttribute("aria-disabled", "true");
  const again = () => {
    delete form.dataset.sent;
    event.submitter?.removeAttribute("aria-disabled");
  };
  setTimeout(again, SENT_FOR * 1000);
  addEventListener("pageshow", again, { once: true });
});

// Instants are written in the zone of the deployment: here they become the reader's, and the title keeps what differs.
const SHOWN = { time: { timeStyle: "short" }, moment: { dateStyle: "medium", timeStyle: "short" }, day: { dateStyle: "medium" } };
const LANGUAGE = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang; // day before month, as the server writes
const localTimes = (within) => {
  for (const time of within?.querySelectorAll("time[data-show]") ?? []) {
    const shown = new Date(time.dateTime).toLocaleString(LANGUAGE, SHOWN[time.dataset.show]);
    if (!time.textContent.startsWith(shown)) time.title = time.textContent;
    time.textContent = shown;
    delete time.dataset.show;
  }
};
localTimes(document);

// Shortly before the page closes: say so, and offer more time without losing what was typed.
const region = document.getElementById("time-warning");
let deadline = 0;
let silent = false;

const limit = () => document.getElementById("time-limit");
const warning = () => document.getElementById("time-warning-text");
const start = () => {
  deadline = Date.now() + Number(limit().dataset.seconds) * 1000;
  limit().dataset.until = deadline; // for a passkey's prompt, which goes when the page does
  silent = false;
  region.replaceChildren();
};
// Screen readers read what changes in the region, which is one sentence a minute.
const tell = (within, left) => {
  const place = within.querySelector("[data-left]");
  const texts = warning().content.querySelector("[data-left]").children; // less than a minute, about two, about three
  const text = texts[Math.min(texts.length, Math.max(1, Math.ceil(left / 60))) - 1].textContent;
  if (place && place.textContent !== text) place.textContent = text;
};
const show = (id, left) => {
  if (region.dataset.shows === id && region.hasChildNodes()) return tell(region, left);
  region.dataset.shows = id;
  const made = document.getElementById(id).content.cloneNode(true);
  tell(made, left);
  region.replaceChildren(made);
  localTimes(region);
  region.querySelector("[data-dismiss]")?.addEventListener("click", () => {
    silent = true;
    region.replaceChildren();
  });
  document.querySelector("main :focus")?.scrollIntoView({ block: "nearest" }); // the note may have come to lie over it
};
const look = () => {
  const left = (deadline - Date.now()) / 1000;
  const near = left <= Number(limit().dataset.warnSeconds);
  if (near) limit().hidden = false;
  if (left <= 0) show("time-over-text", left);
  else if (near && !silent) show("time-warning-text", left);
};
const extend = async (event) => {
  if (event.target.id !== "extend" || event.defaultPrevented) return;
  event.preventDefault();
  const form = event.target;
  try {
    const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (new URL(response.url).searchParams.has("entered")) return location.assign(response.url); // it was refused
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const renewed = page.getElementById("time-limit");
    if (!response.ok || !renewed?.dataset.seconds) return form.submit();
    localTimes(renewed);
    limit().replaceWith(renewed);
    warning().replaceWith(page.getElementById("time-warning-text")); // the last one offers no more time
    renewed.hidden = false; // what was asked for is shown
    renewed.tabIndex = -1;
    renewed.focus({ preventScroll: true }); // the button that was pressed is gone
    start();
  } catch {
    form.submit();
  }
};

if (region && limit()?.dataset.seconds) {
  start();
  document.addEventListener("submit", extend);
  setInterval(look, 1000);
}

// Buttons beside a list are whole at once, however much stands above it: the page rises as far as they are cut.
const cut = (document.querySelector(".kept")?.getBoundingClientRect().bottom ?? 0) - innerHeight;
if (cut > 0 && scrollY === 0 && matchMedia("(min-height: 30rem)").matches) scrollBy(0, cut);

// A password can be looked at while it is typed; it is sent hidden, so that browsers know it for one.
for (const button of document.querySelectorAll("button.reveal")) {
  const input = document.getElementById(button.getAttribute("aria-controls"));
  const show = button.textContent;
  const turn = (visible) => {
    input.type = visible ? "text" : "password";
    button.textContent = visible ? button.dataset.hide : show;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const visible = input.type === "password";
    turn(visible);
    button.nextElementSibling.textContent = visible ? button.dataset.visible : button.dataset.hidden;
  });
  input.form.addEventListener("submit", () => turn(false));
}

// A passkey is offered only in a browser that says that it can create one.
const able = document.querySelector("input[name=passkeys]");
const asks = able && window.PublicKeyCredential?.isUserVerifyingPlatformAuthenticatorAvailable?.();
asks?.then((can) => (able.value = can ? "yes" : "")).catch(() => {});

// While a sign-in is being completed, or a job runs: look every second, and leave the page only once there is another to show.
const again = () => document.getElementById("again");
const lookAgain = async () => {
  const answer = await fetch(again().href).catch(() => null);
  const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
  if (!answer?.ok || !page.getElementById("again")) return location.replace(again().href);
  const progress = page.getElementById("progress");
  if (progress) document.getElementById("progress")?.replaceWith(progress);
  setTimeout(lookAgain, 1000);
};
if (again()) setTimeout(lookAgain, 1000);

// Another language leaves the user name that was typed.
const named = document.getElementById("user_name");
const KEPT = "typed-user-name";
try {
  const typed = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  if (typed && named && !named.value) named.value = typed;
  document.querySelector(".languages")?.addEventListener("click", () => {
    if (named?.value) sessionStorage.setItem(KEPT, named.value);
  });
} catch {
  // this browser keeps nothing
}
