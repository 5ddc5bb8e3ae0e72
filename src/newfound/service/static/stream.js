/** The stream: what is seen as it is seen, how many categories that came to, and what another cut would have made. */

import { get } from "./api.js";
import { captioned, timelineChart } from "./charts.js";
import { debounced, dropZone, fill, h, state, thumbnail } from "./dom.js";
import { ago, count, score } from "./format.js";
import { gathered, listen } from "./live.js";
import { Pages } from "./paging.js";
import { complain } from "./toasts.js";
import { whatIf } from "./what_if.js";

const AT_MOST = 600; // sightings on the page while they come in; then it begins anew, and older ones are a page away

/** Show the stream. */
export async function openStream(main, { many, status, signal }) {
  const shown = new Set();
  const feed = h("ul", { class: "feed", "aria-label": "Sightings, newest first" });
  const nothing = h("div");
  const growth = h("div", { class: "panel" });
  const found = h("section", { "aria-labelledby": "growth", hidden: true }, h("h2", { id: "growth" }, "Found"), growth,
    whatIf(status, signal));

  fill(main, h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Stream")), dropZone(),
    h("div", { class: "columns" },
      h("section", { "aria-labelledby": "feed" }, h("h2", { id: "feed" }, "Seen"), nothing, feed), found));
  const pages = new Pages(feed, { show: (items) => add(items, "append"), first, signal });

  function first(page) {
    shown.clear();
    fill(feed);
    const empty = () => state("empty", "Nothing seen yet", "Drop an image and watch it appear here.");
    fill(nothing, page.items.length ? null : empty());
  }

  function add(items, where) {
    const fresh = items.filter(({ number }) => number !== null && !shown.has(number));
    for (const { number } of fresh) shown.add(number);
    const rows = fresh.map((sighting) => row(sighting, where === "prepend"));
    feed[where](...rows);
    if (where === "prepend" && feed.children.length > AT_MOST && scrollY < innerHeight) begin().catch(complain);
  }

  const begin = (many = 0) => pages.load("v1/sightings", { order: "newest", limit: 50 }, many);

  const grow = async () => {
    const timeline = await get("v1/timeline", {}, signal);
    found.hidden = !timeline.sightings.at(-1); // a chart of nothing says nothing
    const legend = [["known", `all categories: ${count(timeline.categories.at(-1) ?? 0)}`],
      ["new", `discovered: ${count(timeline.discovered.at(-1) ?? 0)}`]];
    fill(growth, captioned("Categories against images seen", timelineChart(timeline), legend));
  };
  const again = debounced(() => signal.aborted || Promise.all([grow(), pages.reload()]).catch(complain), 500);
  listen({
    sighting: gathered((sightings) => {
      fill(nothing);
      add(sightings.sort((one, other) => other.number - one.number), "prepend");
    }),
    position: debounced(() => signal.aborted || grow().catch(complain), 1000),
    edit: again,
    missed: again,
  }, signal);
  await Promise.all([grow(), begin(many)]);
}

function row(sighting, arriving) {
  const said = sighting.is_new ? "founded " : "joined ";
  const doubt = sighting.doubtful ? ", doubtful" : "";
  return h("li", { class: [sighting.is_new && "new", arriving && "arriving"].filter(Boolean).join(" ") },
    h("a", { href: `#/category/${sighting.category}` },
      thumbnail(sighting.number),
      h("span", { class: "words" },
        h("span", {}, said, h("b", { dir: "auto" }, sighting.name ?? `category ${sighting.category}`)),
        h("span", { class: "soft" }, `${ago(sighting.time)} · score ${score(sighting.score)}${doubt}`))));
}
