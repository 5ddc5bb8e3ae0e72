/** The gallery: a card a category, newest discoveries first, and new ones slide in while the stream runs. */

import { get } from "./api.js";
import { Card } from "./card.js";
import { button, debounced, dropZone, fill, h, holdFocus, segments, state } from "./dom.js";
import { plural } from "./format.js";
import { bind } from "./keys.js";
import { gathered, listen } from "./live.js";
import { Pages } from "./paging.js";
import { announce } from "./toasts.js";

const SORTS = { newest: "Newest", size: "Largest", name: "Name", doubt: "Most doubtful" };
const ORIGINS = { "": "All", known: "Known", discovered: "Discovered" };

/** Show the gallery; `query` holds sort, origin, q and ignored, as the address has them, `many` how much was shown. */
export function openGallery(main, { query, many, readdress, status, signal }) {
  const asked = { sort: "newest", origin: "", q: "", ignored: "false", ...query };
  const cards = new Map();
  let all = 0;
  let refocus = () => {}; // gives a focus back that a new first page has taken away
  let newest = status.classes - 1; // the highest id: an event about a higher one tells of a new category
  const total = h("span", { class: "soft" });
  const arrivals = h("p", { class: "arrivals", hidden: true });
  const list = h("ul", { class: "cards", "aria-label": "Categories" });
  const nothing = h("div");
  const begin = h("div", {}, status.sightings ? null : dropZone()); // until something has been seen
  const search = h("input", {
    type: "search", value: asked.q, placeholder: "Search", "aria-label": "Search categories", "aria-keyshortcuts": "/",
    maxlength: 200, dir: "auto",
  });

  fill(main,
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Categories"), total),
    h("div", { class: "bar", role: "group", "aria-label": "What is shown" },
      search,
      segments("Order", "sort", SORTS, asked.sort, (sort) => ask({ sort })),
      segments("Kind", "origin", ORIGINS, asked.origin, (origin) => ask({ origin })),
      h("label", { class: "check" }, h("input", {
        type: "checkbox", checked: asked.ignored === "true",
        on: { change: (event) => ask({ ignored: String(event.target.checked) }) },
      }), "Ignored too")),
    begin, arrivals, nothing, list);
  const pages = new Pages(list, { show, first, signal });

  function ask(changed, many = 0) {
    Object.assign(asked, changed);
    const usual = { sort: "newest", ignored: "false" }; // goes without saying
    readdress(Object.fromEntries(Object.entries(asked).filter(([name, value]) => value !== usual[name])));
    return pages.load("v1/categories", { ...asked, limit: 48 }, many);
  }

  function first(page) {
    cards.clear();
    refocus = holdFocus(list, "a", (link) => link.hash);
    fill(list);
    arrivals.hidden = true;
    showTotal(page.total);
    fill(nothing, page.total ? null : emptiness(asked));
  }

  function show(items) {
    const fresh = items.filter((category) => !cards.has(category.id)).map((category) => new Card(category));
    for (const card of fresh) {
      cards.set(card.category.id, card);
      newest = Math.max(newest, card.category.id);
    }
    list.append(...fresh.map((card) => card.element));
    refocus();
    refocus = () => {};
  }

  /** Known cards change where they are; new ones come in on top, or wait behind a button in another order. */
  function arrive(category) {
    if (cards.has(category.id)) return refresh(category);
    if (category.id <= newest || !fits(category, asked)) return;
    newest = category.id;
    tell(category);
    if (asked.sort !== "newest") return offer("Show what is new");
    const card = new Card(category);
    card.element.classList.add("arriving");
    cards.set(category.id, card);
    list.prepend(card.element);
    fill(nothing);
    showTotal(all + 1);
  }

  function refresh(category) {
    const card = cards.get(category.id);
    card.update(category);
    if (!fits(category, { ...asked, q: "" })) remove(category);
  }

  function remove({ id }) {
    if (!cards.has(id)) return;
    const refocus = holdFocus(list, "a", (link) => link.hash);
    cards.get(id).element.remove();
    cards.delete(id);
    showTotal(all - 1);
    refocus();
  }

  function showTotal(number) {
    all = number;
    total.textContent = plural(all, "category", "categories");
  }

  /** What has changed is shown when asked for: a list that someone is far down in stays as it is. */
  function offer(label) {
    arrivals.hidden = false;
    fill(arrivals, button(label, () => (scrollTo(0, 0), ask({}))));
  }

  const tell = gathered((fresh) => {
    announce(`${plural(fresh.length, "new category", "new categories")}: ${fresh.map(({ name }) => name).join(", ")}`);
  }, 1000);

  const again = debounced(() => signal.aborted || pages.reload(), 300);
  const changed = () => (scrollY < innerHeight ? again() : offer("Show what has changed"));
  const step = (by) => () => focusBy(list, by);
  bind("Gallery", {
    "/": ["search", () => search.focus()],
    ArrowRight: ["next category", step(() => 1)],
    ArrowLeft: ["previous category", step(() => -1)],
    ArrowDown: ["category below", step((columns) => columns)],
    ArrowUp: ["category above", step((columns) => -columns)],
    Enter: ["open", null],
  }, signal);
  search.addEventListener("input", debounced(() => signal.aborted || ask({ q: search.value.trim() }), 200));
  listen({
    category: arrive,
    gone: remove,
    sighting: (sighting) => {
      fill(begin);
      cards.get(sighting.category)?.count(sighting);
    },
    edit: ({ kind }) => kind === "undone" && changed(), // which may bring a card back
    missed: changed,
  }, signal);
  return findNewest().then(() => ask({}, many));

  async function findNewest() {
    const { items } = await get("v1/categories", { sort: "newest", origin: "discovered", limit: 1 }, signal);
    newest = Math.max(newest, ...items.map((category) => category.id));
  }
}

function fits(category, { origin, q, ignored }) {
  const called = category.name.toLowerCase().includes(q.toLowerCase());
  return called && (!origin || category.origin === origin) && (ignored === "true" || !category.ignored);
}

/** Move the focus within a grid of links, by as many as `by` makes of its columns. */
function focusBy(list, by) {
  const links = [...list.querySelectorAll("a")];
  if (!links.length) return;
  const columns = getComputedStyle(list).gridTemplateColumns.split(" ").length;
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? 0 : Math.max(0, Math.min(links.length - 1, at + by(columns)))].focus();
}

function emptiness({ q, origin }) {
  if (q) return state("empty", "Nothing is called that", `No category's name has “${q}” in it.`);
  if (origin === "discovered") {
    return state("empty", "Nothing discovered yet", "Drop images anywhere on this page: what is new gets a card here.");
  }
  return state("empty", "No categories yet", "Drop images anywhere on this page.");
}
