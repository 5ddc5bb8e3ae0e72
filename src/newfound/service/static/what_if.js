/** "What if the cut were another?": a slider, and how many categories the recorded stream would have had. */

import { get } from "./api.js";
import { cutsChart } from "./charts.js";
import { debounced, fill, h } from "./dom.js";
import { count, plural, score } from "./format.js";

const STEPS = 200;

/** The panel; each cut that was asked for stays on its chart. */
export function whatIf(status, signal) {
  const [low, high] = around(status);
  const asked = new Map();
  let wanted = null; // the cut that was asked for last
  const slider = h("input", {
    type: "range", id: "cut", min: low, max: high, step: (high - low) / STEPS, value: status.cut,
    "aria-describedby": "would",
  });
  const value = h("output", { for: "cut" }, score(status.cut));
  const now = `Now there are ${plural(status.categories, "category", "categories")}. Move the cut to compare.`;
  const told = h("p", { id: "would", role: "status" }, now);
  const chart = h("div");

  const ask = debounced(async (cut) => {
    if (signal.aborted) return;
    wanted = cut;
    fill(told, "Replaying the stream…");
    try {
      const [found] = await get("v1/what-if", { cut }, signal);
      asked.set(cut, found.categories);
      if (cut !== wanted) return; // the answer to what is asked by now is on its way
      fill(told, "With the cut at ", h("b", {}, score(cut)), " there would be ",
        h("b", {}, plural(found.categories, "category", "categories")),
        `, ${count(found.discovered)} of them discovered`,
        found.sightings ? ` (${plural(found.sightings, "image")} replayed).` : ".");
      fill(chart, cutsChart([...asked], [low, high], status.cut));
    } catch (error) {
      if (error.name !== "AbortError" && cut === wanted) fill(told, error.message);
    }
  }, 250);
  slider.addEventListener("input", () => {
    value.textContent = score(slider.valueAsNumber);
    ask(slider.valueAsNumber);
  });
  return h("div", { class: "panel stack" },
    h("div", { class: "heading" }, h("label", { for: "cut" }, h("b", {}, "What if the cut were")), value),
    slider, told, chart);
}

/** Where a cut makes sense: cosines end at 1, log ratios nowhere. */
function around({ cut, score: kind }) {
  if (kind === "cosine") return [Math.max(-1, cut - 0.4), Math.min(1, cut + 0.4)];
  const reach = Math.max(10, Math.abs(cut));
  return [cut - reach, cut + reach];
}
