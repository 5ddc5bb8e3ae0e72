/** The map: categories and recent images in two dimensions; point at one to see it, draw around some to select. */

import * as actions from "./actions.js";
import { get } from "./api.js";
import { button, debounced, fill, h, segments, state, thumbnail } from "./dom.js";
import { plural } from "./format.js";
import { bind } from "./keys.js";
import { listen } from "./live.js";
import { draw } from "./map_drawing.js";
import { Plane } from "./map_points.js";
import { pickCategory } from "./picker.js";
import { announce, complain } from "./toasts.js";

const POLL = 2000; // milliseconds between questions whether the t-SNE is ready
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** Show the map. */
export async function openMap(main, { status, signal }) {
  const look = {
    names: new Map(), origins: new Map(), sizes: new Map(), exemplars: new Map(),
    chosen: new Set(), at: null, lasso: [],
  };
  let plane = new Plane([]);
  let method = "pca";
  const told = h("span", { class: "soft", role: "status" });
  const canvas = h("canvas", {
    tabindex: "0", role: "application", "aria-label": "Map of categories and images. Arrows go from point to point, " +
      "Space selects an image, Enter opens its category.",
  });
  const tip = h("div", { class: "tip", hidden: true });
  const bar = h("div", { class: "selected", role: "group", "aria-label": "Selected images", hidden: true });
  const methods = segments("Projection", "method", { pca: "PCA", tsne: "t-SNE" }, method,
    (chosen) => load(chosen).catch(complain));
  const frame = h("div", { class: "map" }, canvas, tip, h("div", { class: "zoom" },
    button("+", () => zoom(1.5), { "aria-label": "Zoom in" }),
    button("−", () => zoom(1 / 1.5), { "aria-label": "Zoom out" })));
  const legend = "Rings are known categories, discs discovered ones, dots images. Draw around dots to select them.";
  fill(main, h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Map"), told, methods), frame,
    h("p", { class: "soft" }, legend), bar);

  const redraw = () => draw(canvas, plane, look);
  const zoom = (factor) => {
    plane.zoomBy(factor);
    if (look.at && factor > 1) plane.centreOn(look.at);
    redraw();
  };

  async function load(wanted = method) {
    method = wanted;
    const answer = await get("v1/map", { limit: 2000, method }, signal);
    if (wanted !== method || signal.aborted) return;
    if (answer.ready === false) {
      told.textContent = "t-SNE is being computed…";
      setTimeout(() => signal.aborted || method !== wanted || load(wanted).catch(complain), POLL);
      return;
    }
    plane = new Plane(answer.points);
    told.textContent = answer.points.length ? `${plural(answer.points.length, "point")}` : "";
    point(null);
    if (!answer.points.length) fill(frame, state("empty", "Nothing to map yet", "Drop images anywhere on this page."));
    else redraw();
  }

  /** Show what is pointed at, with its picture. */
  function point(to) {
    look.at = to;
    tip.hidden = !to;
    canvas.classList.toggle("pointing", Boolean(to));
    if (!to) return;
    const name = look.names.get(to.category) ?? `category ${to.category}`;
    const numbers = to.kind === "sighting" ? [to.id] : (look.exemplars.get(to.id) ?? []).slice(0, 3);
    const pictures = numbers.map((number) => thumbnail(number));
    fill(tip, h("div", { class: "three", data: { pictures: numbers.length } }, pictures), h("b", {}, name));
    const right = to.left > canvas.clientWidth / 2;
    const below = to.top < canvas.clientHeight / 2;
    tip.style.left = `${to.left + (right ? -16 : 16)}px`;
    tip.style.top = `${to.top + (below ? 16 : -16)}px`;
    tip.style.transform = `translate(${right ? "-100%" : "0"}, ${below ? "0" : "-100%"})`;
  }

  function choose(points, on = true) {
    for (const { id } of points) on ? look.chosen.add(id) : look.chosen.delete(id);
    bar.hidden = !look.chosen.size || status.rights === "read";
    fill(bar, h("b", {}, `${plural(look.chosen.size, "image")} selected`), button("Move…", move, { key: "v" }),
      homes().size === 1 && button("Split off", split, { key: "x" }), button("Clear", clear, { key: "Esc" }));
    announce(`${plural(look.chosen.size, "image")} selected`);
    redraw();
  }

  const chosen = () => plane.points.filter(({ kind, id }) => kind === "sighting" && look.chosen.has(id));
  const homes = () => new Set(chosen().map(({ category }) => category));
  const clear = () => choose(chosen(), false);
  const done = (answer) => answer && (clear(), load().catch(complain));
  const split = async () => homes().size === 1 && done(await actions.split([...homes()][0], [...look.chosen]));
  const move = async () => {
    if (!look.chosen.size) return;
    const target = await pickCategory(`Move ${plural(look.chosen.size, "image")} to`);
    if (target) done(await actions.move([...look.chosen], target));
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    look.lasso = [[event.offsetX, event.offsetY]];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons && look.lasso.length) look.lasso.push([event.offsetX, event.offsetY]);
    else point(plane.at(event.offsetX, event.offsetY));
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const lasso = look.lasso;
    look.lasso = [];
    if (lasso.length > 4) return choose(plane.inside(lasso));
    const hit = plane.at(event.offsetX, event.offsetY);
    point(hit);
    if (hit?.kind === "sighting") choose([hit], !look.chosen.has(hit.id));
    else if (hit) location.hash = `#/category/${hit.category}`;
    else clear();
  });
  canvas.addEventListener("pointerleave", () => (point(null), redraw()));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const start = look.at ?? plane.points[0];
    if (!start || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) walk(look.at ? plane.beyond(start, ARROWS[event.key]) : start);
    else if (event.key === " " && look.at?.kind === "sighting") choose([look.at], !look.chosen.has(look.at.id));
    else if (event.key === "Enter" && look.at) location.hash = `#/category/${look.at.category}`;
    else return;
    event.preventDefault();
  });

  function walk(to) {
    point(to);
    redraw();
    announce(`${to.kind === "sighting" ? "image in " : ""}${look.names.get(to.category) ?? `category ${to.category}`}`);
  }

  bind("Map", {
    "← ↑ ↓ →": ["go from point to point", null], Space: ["select the image", null],
    Enter: ["open the category", null],
    "+": ["zoom in", () => zoom(1.5)], "-": ["zoom out", () => zoom(1 / 1.5)], Escape: ["clear the selection", clear],
    ...(status.rights === "write" ? { v: ["move what is selected", move], x: ["split it off", split] } : {}),
  }, signal);
  const resized = new ResizeObserver(redraw);
  resized.observe(canvas);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", redraw, { signal });
  signal.addEventListener("abort", () => resized.disconnect());
  listen({ edit: debounced(() => signal.aborted || start().catch(complain), 500) }, signal);

  async function start() {
    const { items } = await get("v1/categories", { sort: "size", limit: 500 }, signal);
    for (const category of items) {
      look.names.set(category.id, category.name);
      look.origins.set(category.id, category.origin);
      look.sizes.set(category.id, category.count);
      look.exemplars.set(category.id, category.exemplars);
    }
    await load();
  }
  await start();
}
