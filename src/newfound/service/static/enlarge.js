/** Pictures as large as fits, one after the other. */

import { dialog } from "./dialogs.js";
import { button, fill, h, thumbnail } from "./dom.js";
import { moment, score } from "./format.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/**
 * Show a sighting, and those before and after it by buttons and arrows.
 *
 * @param {Array<Object>} sightings as the service gives them.
 * @param {number} at which of them comes first.
 * @returns {Promise<number>} the number of the one that was shown last.
 */
export async function enlarge(sightings, at) {
  const place = h("div", { class: "enlarged" });
  const facts = h("p", { class: "soft", role: "status" });
  const before = button("← Before", () => step(-1));
  const after = button("Next →", () => step(1));
  const whole = h("a", { class: "button", target: "_blank", rel: "noopener" }, "Full size");
  const name = ({ image, number }) => image ?? `image ${number}`;

  function show() {
    const sighting = sightings[at];
    const told = [`image ${sighting.number}`, `seen ${moment(sighting.time)}`,
      `score ${score(sighting.score)}, cut ${score(sighting.cut)}`];
    fill(place, thumbnail(sighting.number, { size: 640, loading: "eager", alt: name(sighting) }));
    facts.textContent = told.join(" · ");
    whole.href = `v1/sightings/${sighting.number}/image`;
    before.disabled = at === 0;
    after.disabled = at === sightings.length - 1;
    const title = place.closest("dialog")?.querySelector("h2");
    if (title) title.textContent = name(sighting);
  }

  function step(by) {
    if (!sightings[at + by]) return;
    at += by;
    show();
  }

  const opened = dialog(name(sightings[at]), () => [place, facts, h("div", { class: "acts" }, before, after, whole)], {
    wide: true, keys: (event) => event.key in STEPS && step(STEPS[event.key]),
  });
  show();
  await opened;
  return sightings[at].number;
}
