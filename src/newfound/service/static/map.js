/** The map: categories and recent images in two dimensions; point at one to see it, draw around some to select. */

import * as actions from "./actions.js";
import { get } from "./api.js";
import { button, debounced, fill, h, holdFocus, segments, state, thumbnail } from "./dom.js";
import { plural } from "./format.js";
import { bind } from "./keys.js";
import { listen } from "./live.js";
import { draw } from "./map_drawing.js";
import { hearGestures } from "./map_gestures.js";
import { Labels } from "./map_labels.js";
import { Plane } from "./map_points.js";
import { pickCategory } from "./picker.js";
import { announce, complain } from "./toasts.js";

const POLL = 2000; // milliseconds between questions whether the t-SNE is ready
const SETTLED = 1500; // milliseconds without news after which the map is drawn anew
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const LEGEND = "Circles are categories, blue for known and orange for discovered ones; dots are images. Draw around dots " +
  "to select them. ";
const MOVING = [["by-mouse", "Drag with Shift to move the map, turn the wheel to zoom."],
  ["by-touch", "Two fingers move and zoom."]];

/** Show the map. */
export async function openMap(main, { status, signal }) {
  const labels = new Labels(() => redraw());
  const look = { labels, chosen: new Set(), at: null, lasso: [] };
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
  const hand = button("Move map", () => hand.setAttribute("aria-pressed", String(!moves())), { "aria-pressed": "false" });
  const moves = () => hand.getAttribute("aria-pressed") === "true";
  const frame = h("div", { class: "map" }, canvas, tip);
  fill(main, h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Map"), told,
    h("div", { class: "acts" }, methods, hand, button("+", () => zoom(1.5), { "aria-label": "Zoom in" }),
      button("−", () => zoom(1 / 1.5), { "aria-label": "Zoom out" }))),
  frame, h("p", { class: "soft" }, LEGEND, MOVING.map(([kind, words]) => h("span", { class: kind }, words))), bar);

  const redraw = () => draw(canvas, plane, look);
  const zoom = (factor, place) => {
    plane.zoomBy(factor, place);
    if (look.at && !place && factor > 1) plane.centreOn(look.at);
    redraw();
    point(look.at);
    tell();
  };
  const tell = () => {
    const larger = plane.zoom > 1 ? `, ${plane.zoom.toFixed(1)} times larger` : "";
    told.textContent = plane.points.length ? plural(plane.points.length, "point") + larger : "";
  };

  async function load(wanted = method) {
    const same = wanted === method;
    method = wanted;
    const answer = await get("v1/map", { limit: 2000, method }, signal);
    if (wanted !== method || signal.aborted) return;
    if (answer.ready === false) {
      told.textContent = "t-SNE is being computed…";
      setTimeout(() => signal.aborted || method !== wanted || load(wanted).catch(complain), POLL);
      return;
    }
    plane = new Plane(answer.points, same ? plane : null);
    tell();
    if (!answer.points.length) fill(frame, state("empty", "Nothing to map yet", "Drop images anywhere on this page."));
    else redraw();
    point(plane.points.find(({ kind, id }) => kind === look.at?.kind && id === look.at.id) ?? null);
    if (look.chosen.size) showBar();
  }

  /** Show what is pointed at, with its picture. */
  function point(to) {
    look.at = to;
    tip.hidden = !to;
    canvas.classList.toggle("pointing", Boolean(to));
    if (!to) return;
    const numbers = to.kind === "sighting" ? [to.id] : (labels.exemplars.get(to.id) ?? []).slice(0, 3);
    const pictures = numbers.map((number) => thumbnail(number));
    fill(tip, h("div", { class: "three", data: { pictures: numbers.length } }, pictures),
      h("b", { dir: "auto" }, labels.name(to.category)));
    const right = to.left > canvas.clientWidth / 2;
    const below = to.top < canvas.clientHeight / 2;
    const beside = (to.radius ?? 0) + 12;
    tip.style.left = `${to.left + (right ? -beside : beside)}px`;
    tip.style.top = `${to.top + (below ? beside : -beside)}px`;
    tip.style.transform = `translate(${right ? "-100%" : "0"}, ${below ? "0" : "-100%"})`;
  }

  function choose(points, on = true) {
    for (const { id } of points) on ? look.chosen.add(id) : look.chosen.delete(id);
    showBar();
    announce(`${plural(look.chosen.size, "image")} selected`);
    redraw();
  }

  function showBar() {
    const refocus = holdFocus(bar, "button", (element) => element.textContent);
    bar.hidden = !look.chosen.size || status.rights === "read";
    fill(bar, h("b", {}, `${plural(look.chosen.size, "image")} selected`), button("Move…", move, { key: "v" }),
      homes().size === 1 && button("Split off", split, { key: "x" }), button("Clear", clear, { key: "Esc" }));
    if (!bar.hidden) refocus();
  }

  const chosen = () => plane.points.filter(({ kind, id }) => kind === "sighting" && look.chosen.has(id));
  const homes = () => new Set(chosen().map(({ category }) => category));
  const clear = () => choose([...look.chosen].map((id) => ({ id })), false);
  const done = (answer) => answer && (clear(), start().catch(complain));
  const split = async () => homes().size === 1 && done(await actions.split([...homes()][0], [...look.chosen]));
  const move = async () => {
    if (!look.chosen.size) return;
    const target = await pickCategory(`Move ${plural(look.chosen.size, "image")} to`);
    if (target) done(await actions.move([...look.chosen], target));
  };
  const visit = (to) => (location.hash = `#/category/${to.category}`);

  hearGestures(canvas, {
    moves,
    hover: (place) => (point(place && plane.at(...place)), redraw()),
    draw: (path) => ((look.lasso = path), redraw()),
    loop: (path) => choose(plane.inside(path)),
    move: (right, down) => (plane.moveBy(right, down), point(null), redraw()),
    zoom,
    tap: (place, byTouch) => {
      const hit = plane.at(...place, byTouch ? 20 : 12);
      const again = hit === look.at; // a finger cannot hover: its first tap shows a category, the second opens it
      point(hit);
      if (hit?.kind === "sighting") choose([hit], !look.chosen.has(hit.id));
      else if (hit && (!byTouch || again)) visit(hit);
      else if (!hit) clear();
      redraw();
    },
  });
  canvas.addEventListener("keydown", (event) => {
    const start = look.at ?? plane.points[0];
    if (!start || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) walk(look.at ? plane.beyond(start, ARROWS[event.key]) : start);
    else if (event.key === " " && look.at?.kind === "sighting") choose([look.at], !look.chosen.has(look.at.id));
    else if (event.key === "Enter" && look.at) visit(look.at);
    else return;
    event.preventDefault();
  });

  function walk(to) {
    const seen = to.left >= 0 && to.left <= canvas.clientWidth && to.top >= 0 && to.top <= canvas.clientHeight;
    if (!seen) plane.centreOn(to);
    redraw();
    point(to);
    announce(`${to.kind === "sighting" ? "image in " : ""}${labels.name(to.category)}`);
    redraw();
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
  const again = debounced(() => signal.aborted || start().catch(complain), 500);
  const settled = debounced(() => signal.aborted || start().catch(complain), SETTLED);
  listen({ edit: again, missed: again, sighting: settled }, signal);

  async function start() {
    await labels.load(signal);
    await load();
  }
  await start();
}
