/** A category as a card: its pictures first, then its name, how often and when it was seen, and how sure that is. */

import { badge, fill, h, thumbnail } from "./dom.js";
import { moment, percent, plural, span } from "./format.js";

/** A list item with a link; `update` and `count` show what has changed. */
export class Card {
  constructor(category) {
    this.pictures = h("div", { class: "mosaic" });
    this.words = h("div", { class: "words" });
    this.link = h("a", { class: "card", href: `#/category/${category.id}` }, this.pictures, this.words);
    this.element = h("li", { data: { id: category.id } }, this.link);
    this.update(category);
  }

  /** Show the category as the service tells it. */
  update(category) {
    this.told = category.last_seen ?? 0;
    this.#show(category);
  }

  /** Count a sighting, unless it is as old as what the service has told. */
  count({ number, time }) {
    if (time <= this.told) return;
    const { count, exemplars, first_seen: first } = this.category;
    const shown = exemplars.length < 6 ? [...exemplars, number] : exemplars;
    this.#show({ ...this.category, count: count + 1, exemplars: shown, first_seen: first ?? time, last_seen: time });
  }

  #show(category) {
    const exemplars = category.exemplars.join();
    if (exemplars !== this.shown) fill(this.pictures, mosaic(category)); // pictures that stay are not loaded again
    this.shown = exemplars;
    this.category = category;
    this.pictures.dataset.pictures = Math.min(category.exemplars.length, 6);
    this.link.classList.toggle("new", category.origin !== "known");
    this.link.classList.toggle("ignored", category.ignored);
    fill(this.words,
      h("h2", { class: category.named ? null : "unnamed", dir: "auto", title: category.name }, category.name),
      h("p", {}, badge(category), h("span", { class: "count" }, plural(category.count, "image"))),
      h("p", { class: "soft" }, seen(category)),
      sureness(category));
  }
}

function mosaic(category) {
  if (!category.exemplars.length) return h("span", { class: "initial", "aria-hidden": "true" }, initial(category.name));
  return category.exemplars.slice(0, 6).map((number, at) => thumbnail(number, { size: at ? 160 : 320 }));
}

/** The first letter as people see it, which may be several code points: a flag, a family. */
function initial(name) {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return first?.segment ?? "";
}

/** When it was first and last seen. */
export function seen({ first_seen: first, last_seen: last }) {
  if (last === null) return "not seen yet";
  return h("span", { title: `first ${moment(first)}, last ${moment(last)}` }, `seen ${span(first, last)}`);
}

/** How sure the answers were, as a thin bar with its number; nothing where nothing was seen. */
export function sureness({ doubt }) {
  if (doubt === null) return null;
  const sure = 1 - doubt;
  return h("p", { class: "sure" },
    h("meter", { min: 0, max: 1, low: 0.5, high: 0.8, optimum: 1, value: sure, "aria-label": "How sure" }),
    h("span", {}, `${percent(sure)} sure`));
}
