/** The frame around the views: addresses, totals, shortcuts, uploads. */

import { undo } from "./actions.js";
import { get, whenLocked } from "./api.js";
import { openCategory } from "./category.js";
import { login, showHelp } from "./dialogs.js";
import { openDoubt } from "./doubt.js";
import { button, debounced, fill, state } from "./dom.js";
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
const main = document.getElementById("main");
let leaving = new AbortController();
let status = null;

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
  const [title, show] = VIEWS[view];
  document.title = `${title} · newfound`;
  for (const link of document.querySelectorAll("[data-view]")) {
    const current = link.dataset.view === (view === "category" ? "gallery" : view);
    current ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  fill(main, state("loading", "Loading…"));
  scrollTo(0, 0);
  try {
    status = await get("v1/status", {}, signal);
    showTotals();
    const opened = show(main, { id, query, status, signal, readdress: (asked) => readdress(asked, signal) });
    await opened;
    if (focus && !signal.aborted) main.querySelector("h1")?.focus({ preventScroll: true });
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    fill(main, state("error", error.status === 404 ? "There is no such category" : "This did not work", error.message,
      button("Try again", () => open())));
    if (!("status" in error)) throw error;
  }
}

/** Keep what a view shows in the address, so that it is there after a reload, without a step in the history. */
function readdress(asked, signal) {
  if (signal.aborted) return;
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  const [place] = (location.hash || "#/").split("?");
  history.replaceState(null, "", query.size ? `${place}?${query}` : place);
}

function showTotals() {
  document.body.dataset.rights = status.rights;
  const { sightings, categories, discovered } = status;
  document.getElementById("totals").textContent =
    `${plural(sightings, "image")} · ${plural(categories, "category", "categories")} · ${count(discovered)} discovered`;
}

const totals = debounced(async () => {
  status = await get("v1/status").catch(() => status);
  if (status) showTotals();
}, 400);

function showState(word) {
  document.getElementById("live").dataset.state = word;
  document.getElementById("live-text").textContent = { live: "live", waiting: "reconnecting" }[word];
}

const go = (place) => () => (location.hash = place);
bind("Everywhere", {
  "g g": ["gallery", go("#/")], "g m": ["map", go("#/map")], "g s": ["stream", go("#/stream")],
  "g d": ["doubt", go("#/doubt")], a: ["add images", () => document.getElementById("files").click()],
  u: ["undo what was done last (also Ctrl Z)", undo], "?": ["this help", showHelp],
});
document.getElementById("help").addEventListener("click", showHelp);
document.getElementById("skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));
whenLocked(() => login().then(follow));
listen({ state: showState, position: totals, edit: totals });
addEventListener("hashchange", () => open());
acceptImages();
await open(false);
follow();
