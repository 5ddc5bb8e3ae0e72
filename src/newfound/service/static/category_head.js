/** The upper half of the category view: the name, what is known of it, and the categories it looks like. */

import { get } from "./api.js";
import { badge, button, fill, h, thumbnail } from "./dom.js";
import { seen, sureness } from "./card.js";
import { histogram } from "./charts.js";
import { ago, plural, score, within } from "./format.js";

const WIDE = "(min-width: 60rem)"; // where there is room beside the name
const HAPPENED = {
  renamed: "renamed", merged: "merged", split: "split", moved: "images moved", ignored: "ignored, or no longer",
  promoted: "to be taught, or no longer", undone: "something undone",
};
const LONG = 60; // letters of a name that is written smaller
const ITSELF = "newfound"; // the actor of what no person has done

/**
 * Name, facts, buttons and the spread of scores.
 *
 * @param {Object} category as the service gives it, with histogram and neighbours.
 * @param {Object<string, function()>} acts rename, merge, ignore and promote.
 */
export function headOf(category, cut, acts) {
  const discovered = category.origin === "discovered";
  return h("div", { class: "head" },
    h("div", { class: "stack" },
      h("div", { class: "heading title" }, heading(category)),
      h("p", { class: "facts" }, badge(category), h("span", {}, plural(category.count, "image")), seen(category),
        sureness(category)),
      h("div", { class: "acts write" },
        button("Rename", acts.rename, { key: "r" }),
        button("Merge…", acts.merge, { key: "m" }),
        discovered && button(category.ignored ? "Stop ignoring" : "Ignore", acts.ignore, { key: "i" }),
        discovered && button(category.promoted ? "Do not teach" : "Teach next time", acts.promote, { key: "p" }))),
    background(category, cut));
}

function heading({ name }) {
  return h("h1", { tabindex: "-1", dir: "auto", class: name.length > LONG ? "long" : null }, name);
}

/** How its scores are spread, and what people did to it: folded where that would push the images away. */
function background({ histogram: spread, events }, cut) {
  const past = events.filter(({ kind, actor }) => kind in HAPPENED && actor !== ITSELF);
  const told = ({ kind, actor, time }) => h("li", {}, `${HAPPENED[kind]} ${ago(time)} by ${within(actor)}`);
  return h("div", { class: "background" },
    spread?.counts.some(Boolean) && h("details", { class: "scores", open: matchMedia(WIDE).matches },
      h("summary", {}, "Scores of its images"), histogram(spread, cut)),
    past.length > 0 && h("details", { class: "past" }, h("summary", {}, `Changed ${plural(past.length, "time")}`),
      h("ul", { class: "soft" }, past.map(told))));
}

/** Put a form in the place of the name; resolves with the new name, or null if it was left as it was. */
export function askName(head, category) {
  const title = head.querySelector(".title");
  const heading = title.firstElementChild;
  return new Promise((resolve) => {
    const input = h("input", {
      value: category.name, dir: "auto", "aria-label": "Name of the category", maxlength: 200, required: true,
    });
    const end = (name) => {
      title.replaceChildren(heading);
      heading.focus();
      resolve(name);
    };
    const submit = (event) => {
      event.preventDefault();
      const name = input.value.trim();
      if (name) end(name === category.name && category.named ? null : name);
    };
    fill(title, h("form", { class: "naming", on: { submit } }, input,
      h("button", { class: "button primary", type: "submit" }, "Save"),
      button("Cancel", () => end(null))));
    input.addEventListener("keydown", (event) => event.key === "Escape" && end(null));
    input.select();
    input.scrollIntoView({ block: "center" }); // a key may have been pressed far below
  });
}

/** The nearest categories with a few pictures each, and a button that merges. */
export function neighboursOf(category, mergeWith, signal) {
  if (!category.neighbours?.length) return null;
  return h("section", { "aria-labelledby": "looks-like" }, h("h2", { id: "looks-like" }, "Looks like"),
    h("ul", { class: "neighbours", tabindex: "0", "aria-labelledby": "looks-like" }, category.neighbours.map((near) => {
      const pictures = h("div", { class: "three" });
      showSome(pictures, near.category, signal);
      return h("li", {},
        h("a", { href: `#/category/${near.category}` }, pictures, h("span", { class: "name", dir: "auto" }, near.name)),
        h("p", { class: "soft" }, `score ${score(near.score)}`),
        button("Merge", () => mergeWith({ id: near.category, name: near.name }), {
          class: "button small write", "aria-label": `Merge with ${within(near.name)}`,
        }));
    })));
}

/** Up to three pictures of a category; without an answer the place stays empty. */
export async function showSome(place, category, signal) {
  const page = await get("v1/sightings", { category, limit: 3, order: "newest" }, signal).catch(() => ({ items: [] }));
  fill(place, page.items.map(({ number }) => thumbnail(number)));
}
