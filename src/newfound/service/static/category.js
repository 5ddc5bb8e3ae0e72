/** The category view: all its images, to select, move, split off, or merge with what it looks like. */

import * as actions from "./actions.js";
import { get } from "./api.js";
import { askName, headOf, neighboursOf } from "./category_head.js";
import { button, debounced, fill, h, holdFocus, state, thumbnail } from "./dom.js";
import { enlarge } from "./enlarge.js";
import { plural, score, within } from "./format.js";
import { bind } from "./keys.js";
import { listen } from "./live.js";
import { Pages } from "./paging.js";
import { pickCategory } from "./picker.js";
import { Selection } from "./selection.js";
import { complain } from "./toasts.js";

const ORDERS = {
  similar: "Most typical first", outliers: "Outliers first", newest: "Newest first", stream: "Oldest first",
};
const AT_ONCE = 500; // images that are loaded anew without being asked: more would be taken away meanwhile

/** Show a category; one that was merged leads on to where it lives now. `from` is the address of the gallery. */
export async function openCategory(main, { id, query, from, readdress, status, signal }) {
  let category = await get(`v1/categories/${id}`, {}, signal);
  if (leave()) return;
  const sightings = new Map();
  let refocus = () => {}; // gives a focus back that a new first page has taken away
  const top = h("div", { class: "stack" });
  const more = h("p", { class: "arrivals", hidden: true });
  const nothing = h("div");
  const grid = h("ul", { class: "grid", role: "listbox", "aria-multiselectable": "true", "aria-label": "Images" });
  const bar = h("div", { class: "selected", role: "group", "aria-label": "Selected images", hidden: true });
  const order = h("select", { "aria-label": "Order of the images", on: { change: () => load() } },
    Object.entries(ORDERS).map(([value, text]) => h("option", { value, selected: value === query.order }, text)));

  fill(main, h("p", {}, h("a", { class: "back", href: from }, "All categories")), top,
    h("section", { "aria-labelledby": "images" },
      h("div", { class: "heading" }, h("h2", { id: "images" }, "Images"), order), more, nothing, grid), bar);
  const pages = new Pages(grid, { show, first, signal });
  const selection = new Selection(grid, { changed: showBar, open: enlargeFrom });

  /** Go to where the category lives now, if that is elsewhere. */
  function leave() {
    const home = category.merged_into ?? category.id;
    if (home !== id) location.replace(`#/category/${home}`);
    return home !== id;
  }

  function showHead() {
    document.title = `${category.name} · newfound`;
    const refocus = holdFocus(top, "h1, button, a, summary", (element) => element.textContent);
    const folds = new Map([...top.querySelectorAll("details")].map((fold) => [fold.className, fold.open]));
    fill(top, headOf(category, status.cut, acts), neighboursOf(category, mergeWith, signal));
    for (const fold of top.querySelectorAll("details")) fold.open = folds.get(fold.className) ?? fold.open;
    refocus();
  }

  function load() {
    readdress({ order: order.value === "similar" ? "" : order.value });
    return pages.load(`v1/categories/${id}/sightings`, { order: order.value, limit: 100 });
  }

  /** Images that are the same as before stay as they are: nothing moves under a hand that is about to press. */
  function first(page) {
    more.hidden = true;
    if (sightings.size && page.items.map(({ number }) => number).join() === [...sightings.keys()].join()) return;
    sightings.clear();
    refocus = holdFocus(grid, "[role=option]", (option) => option.dataset.number);
    fill(grid);
    grid.hidden = !page.items.length;
    const empty = () => state("empty", "No image of it was seen yet", "What is recognised as it is shown here.");
    fill(nothing, page.items.length ? null : empty());
  }

  function show(items) {
    const fresh = items.filter(({ number }) => !sightings.has(number));
    for (const sighting of items) sightings.set(sighting.number, sighting);
    grid.append(...fresh.map((sighting) => tile(sighting, selection.numbers.has(sighting.number))));
    selection.settle();
    refocus();
    refocus = () => {};
  }

  async function enlargeFrom(number) {
    const last = await enlarge([...sightings.values()], [...sightings.keys()].indexOf(number));
    grid.querySelector(`[data-number="${last}"]`)?.focus();
  }

  function showBar(numbers) {
    bar.hidden = !numbers.size;
    const [one] = numbers;
    const refocus = holdFocus(bar, "button", (element) => element.textContent);
    fill(bar, h("b", {}, `${plural(numbers.size, "image")} selected`),
      button("Move…", acts.move, { key: "v", class: "button write" }),
      button("Split off", acts.split, { key: "x", class: "button write" }),
      numbers.size === 1 && button("Enlarge", () => enlargeFrom(one)),
      numbers.size < sightings.size && button("All", () => selection.all(), { "aria-label": "Select all" }),
      button("Clear", () => selection.clear(), { key: "Esc", "aria-keyshortcuts": "Escape" }));
    if (numbers.size) refocus();
  }

  /** The category and its images as they are now, as many as are shown; what is selected and still here stays so. */
  async function refresh() {
    category = await get(`v1/categories/${id}`, {}, signal);
    if (leave()) return;
    if (!top.querySelector("form")) showHead(); // a name that is being typed is not taken away
    await pages.reload();
  }

  const changed = debounced(() => {
    if (signal.aborted) return;
    if (sightings.size > AT_ONCE) offer("Show what has changed");
    else refresh().catch(complain);
  }, 300);

  function offer(label) {
    more.hidden = false;
    fill(more, button(label, () => refresh().catch(complain)));
  }

  const chosen = () => [...selection.numbers];
  const near = () => known(category.neighbours.map((one) => one.category));

  async function mergeWith(other) {
    const whole = other && (await actions.merge(category, other));
    if (whole && whole.id !== id) location.replace(`#/category/${whole.id}`);
  }

  async function done(answer) {
    if (!answer) return;
    selection.clear();
    await refresh();
    if (!grid.contains(document.activeElement)) (grid.firstElementChild ?? main.querySelector("h1")).focus();
  }

  const acts = {
    rename: async () => {
      if (top.querySelector("form")) return;
      const name = await askName(top, category);
      showHead(); // someone may have changed it meanwhile
      if (name && (await actions.rename(id, name, mergeWith))) await refresh();
      main.querySelector("h1").focus();
    },
    merge: async () => {
      const title = `Merge ${within(category.name)} with`;
      mergeWith(await pickCategory(title, { without: id, suggested: near() }));
    },
    ignore: async () => (await actions.flag(category, "ignored", !category.ignored)) && refresh(),
    promote: async () => (await actions.flag(category, "promoted", !category.promoted)) && refresh(),
    move: async () => {
      if (!selection.numbers.size) return;
      const title = `Move ${plural(selection.numbers.size, "image")} to`;
      const target = await pickCategory(title, { without: id, suggested: near() });
      if (target) await done(await actions.move(chosen(), target));
    },
    split: async () => selection.numbers.size && done(await actions.split(id, chosen())),
  };

  showHead();
  if (status.rights === "write") {
    const discovered = category.origin === "discovered";
    bind("This category", {
      r: ["rename", acts.rename], m: ["merge with another", acts.merge],
      ...(discovered ? { i: ["ignore, or no longer", acts.ignore], p: ["teach next time, or not", acts.promote] } : {}),
      v: ["move what is selected", acts.move], x: ["split it off", acts.split],
    }, signal);
  }
  bind("Images", {
    "← ↑ ↓ →": ["go from image to image", null], Space: ["select; with Shift all between", null],
    "Ctrl A": ["select all that are loaded", null], Enter: ["enlarge", null],
    Escape: ["clear the selection", () => selection.clear()],
  }, signal);
  listen({
    edit: changed,
    missed: changed,
    sighting: ({ category: home, number }) => home === id && !sightings.has(number) && offer("Show new images"),
  }, signal);
  await load();
}

/** The first of some categories, with what the picker shows of them; those that are gone are left out. */
async function known(ids) {
  const asked = ids.slice(0, 5).map((id) => get(`v1/categories/${id}`).catch(() => null));
  return (await Promise.all(asked)).filter(Boolean);
}

function tile(sighting, selected) {
  const { image, number, doubtful, moved } = sighting;
  const told = [image ?? `image ${number}`, doubtful && "doubtful", moved && "put here by hand"];
  return h("li", {
    role: "option", tabindex: "-1", "aria-selected": String(selected), data: { number },
    class: doubtful ? "doubtful" : null, title: `score ${score(sighting.score)}`,
    "aria-label": `${told.filter(Boolean).join(", ")}, score ${score(sighting.score)}`,
  }, thumbnail(number));
}
