/** The frame around the views: addresses, totals, shortcuts, uploads. */

import { resume, undo } from "./actions.js";
import { get, whenLocked } from "./api.js";
import { openCategory } from "./category.js";
import { login, showHelp } from "./dialogs.js";
import { openDoubt } from "./doubt.js";
import { button, debounced, fill, h, state } from "./dom.js";
import { count, plural } from "./format.js";
import { openGallery } from "./gallery.js";
import { bind } from "./keys.js";
import { follow, listen } from "./live.js";
import { openMap } from "./map.js";
import { openStream } from "./stream.js";
import { acceptImages } from "./uploads.js";

const VIEWS = {
  gallery: ["Categories", openGallery], category: ["Category", openCategory], map: ["Map", openMap],
  stream: ["Stream", openStream], doubt: ["Doubt", openDoubt],
};
const SKIP = "#main"; // the address of the link over the header: no view of its own
const SLOW = 250; // milliseconds for which the view before stays: a flash of "Loading…" helps nobody
const main = document.getElementById("main");
const left = new Map(); // by address: how much a view had shown, and where one went from there
let here = null;
let leaving = new AbortController();
let status = null;
let failed = false;

/** What an address asks for: the view, the category's id and the query. */
function route(hash) {
  const [place, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, id] = place.split("/");
  const asked = Object.fromEntries(new URLSearchParams(query));
  return { view: view in VIEWS ? view : "gallery", id: Number(id), query: asked };
}

/** Leave the view that is open and open the one that the address asks for. */
async function open(focus = true) {
  if (location.hash === SKIP) return;
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { view, id, query } = route(location.hash);
  const before = depart();
  const [title, show] = VIEWS[view];
  document.title = `${title} · newfound`;
  for (const link of document.querySelectorAll("[data-view]")) {
    const current = link.dataset.view === (view === "category" ? "gallery" : view);
    current ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  const shown = main.firstElementChild;
  const slow = setTimeout(() => main.firstElementChild === shown && fill(main, state("loading", "Loading…")), SLOW);
  failed = false;
  try {
    status = await get("v1/status", {}, signal);
    resume(status.began);
    showTotals();
    await show(main, {
      id, query, status, signal, many: before?.many ?? 0, from: lastGallery(),
      readdress: (asked) => readdress(asked, signal),
    });
    if (!signal.aborted) arrive(before, focus);
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    failed = error.status === 0;
    fill(main, view === "category" && error.status === 404
      ? state("error", "There is no such category", error.message, h("a", { href: lastGallery() }, "All categories"))
      : state("error", failed ? "No answer" : "This did not work", error.message, button("Try again", () => open())));
    if (!("status" in error)) throw error;
  } finally {
    clearTimeout(slow);
  }
}

/** Remember the view that is left; returns what was remembered of the one that is opened, if it was open before. */
function depart() {
  const [was, many] = [here, main.querySelector(".cards, .feed")?.children.length ?? 0];
  here = location.hash || "#/";
  if (was !== null && was !== here) {
    left.delete(was); // what was left last is at the end
    left.set(was, { many, went: here });
  }
  return left.get(here);
}

/** Go on where one was: at the link that was followed; a view that is new begins at its top. */
function arrive(before, focus) {
  const links = [...main.querySelectorAll(".cards a, .feed a")];
  const followed = before && links.find((link) => link.hash === before.went);
  scrollTo(0, 0);
  followed?.scrollIntoView({ block: "center" });
  if (focus) (followed ?? main.querySelector("h1"))?.focus({ preventScroll: true });
}

/** The gallery as it was seen last: its order, and what was searched for. */
function lastGallery() {
  return [...left.keys()].findLast((hash) => route(hash).view === "gallery") ?? "#/";
}

/** Keep what a view shows in the address, so that it is there after a reload, without a step in the history. */
function readdress(asked, signal) {
  if (signal.aborted) return;
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  const [place] = (location.hash || "#/").split("?");
  history.replaceState(null, "", query.size ? `${place}?${query}` : place);
  here = location.hash;
}

function showTotals() {
  document.body.dataset.rights = status.rights;
  const { sightings, categories, discovered } = status;
  document.getElementById("totals").textContent =
    `${plural(sightings, "image")} · ${plural(categories, "category", "categories")} · ${count(discovered)} discovered` +
    (status.rights === "read" ? " · read only" : "");
}

const totals = debounced(async () => {
  status = await get("v1/status").catch(() => status);
  if (status) showTotals();
}, 400);

/** Say whether news arrive; a view that could not be reached is opened as soon as the service is back. */
function showState(word) {
  document.getElementById("live").dataset.state = word;
  document.getElementById("live-text").textContent = { live: "live", waiting: "reconnecting…" }[word];
  if (word === "live" && failed) open(false);
}

function chooseFiles() {
  if (status?.rights === "write") document.getElementById("files").click();
}

const go = (place) => () => (location.hash = place);
bind("Everywhere", {
  "g g": ["gallery", go("#/")], "g m": ["map", go("#/map")], "g s": ["stream", go("#/stream")],
  "g d": ["doubt", go("#/doubt")], a: ["add images", chooseFiles],
  u: ["undo what was done here last (also Ctrl Z)", () => undo()], "?": ["this help", showHelp],
});
document.getElementById("help").addEventListener("click", showHelp);
document.getElementById("undo").addEventListener("click", () => undo());
document.getElementById("skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));
whenLocked(() => login().then(follow));
listen({ state: showState, position: totals, edit: totals, missed: totals });
addEventListener("hashchange", () => open());
acceptImages(() => status);
follow(); // first of all: what happens while a view loads is not missed
await open(false);
