/** Charts in SVG, drawn for the width they have; what they show is said in words too. */

import { fill, h, svg } from "./dom.js";
import { count, score } from "./format.js";

const LEFT = 44;
const BOTTOM = 28;
const TOP = 10;

/** A few round values from 0 to at least `most`. */
function ticks(most, about = 4) {
  const rough = Math.max(most, 1) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((times) => times * power >= rough) * power);
  return Array.from({ length: Math.ceil(Math.max(most, 1) / step) + 1 }, (_, at) => at * step);
}

/** A figure that is drawn again when its width changes: `draw(width)` gives the children of the SVG. */
function figure(label, height, draw) {
  const picture = svg("svg", { role: "img", "aria-label": label, height, width: "100%", class: "chart" });
  const redraw = () => picture.clientWidth && fill(picture, draw(picture.clientWidth));
  new ResizeObserver(redraw).observe(picture);
  return picture;
}

const line = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });
const words = (x, y, anchor, text, kind = null) => svg("text", { x, y, "text-anchor": anchor, class: kind }, text);

/** Lines across a chart, with their values at the left. */
function scale(values, y, width) {
  return values.map((value) => [
    line(LEFT, y(value), width, y(value), "grid"), words(LEFT - 8, y(value) + 4, "end", count(value)),
  ]);
}

/**
 * Categories against images seen.
 *
 * @param {{sightings: number[], categories: number[], discovered: number[]}} timeline
 */
export function timelineChart({ sightings, categories, discovered }, height = 220) {
  const most = sightings.at(-1) ?? 0;
  const rows = ticks(Math.max(...categories, 1));
  const label = `After ${count(most)} images there are ${count(categories.at(-1) ?? 0)} categories, ` +
    `${count(discovered.at(-1) ?? 0)} of them discovered.`;
  return figure(label, height, (width) => {
    const x = (value) => LEFT + ((width - LEFT - 12) * value) / Math.max(most, 1);
    const y = (value) => height - BOTTOM - ((height - BOTTOM - TOP) * value) / rows.at(-1);
    const steps = (values) => values.map((value, at) =>
      (at ? `H${x(sightings[at])}V${y(value)}` : `M${x(sightings[at])} ${y(value)}`)).join("");
    const columns = ticks(most, width < 500 ? 3 : 6).filter((value) => value <= most);
    return [
      scale(rows, y, width),
      columns.map((value) => words(x(value), height - 8, value ? "middle" : "start", count(value))),
      svg("path", { class: "line known", d: steps(categories) }),
      svg("path", { class: "line new", d: steps(discovered) }),
    ];
  });
}

/** How the scores of a category's sightings are spread, with the cut. */
export function histogram({ edges, counts }, cut, height = 96) {
  const most = Math.max(...counts, 1);
  const label = `Scores from ${score(edges[0])} to ${score(edges.at(-1))}; the cut is ${score(cut)}.`;
  return figure(label, height, (width) => {
    const [low, high] = [Math.min(edges[0], cut), Math.max(edges.at(-1), cut)];
    const x = (value) => 2 + ((width - 4) * (value - low)) / (high - low || 1);
    const floor = height - 22;
    return [
      counts.map((value, at) => svg("rect", {
        class: "column", x: x(edges[at]) + 0.5, width: Math.max(1, x(edges[at + 1]) - x(edges[at]) - 1),
        y: floor - (floor - 8) * (value / most), height: (floor - 8) * (value / most),
      })),
      line(2, floor, width - 2, floor, "grid"),
      line(x(cut), 2, x(cut), floor, "cut"),
      words(Math.min(Math.max(x(cut), 28), width - 28), height - 6, "middle", `cut ${score(cut)}`),
    ];
  });
}

/** What each cut that was asked for would have found: [cut, categories] pairs, with the present cut marked. */
export function cutsChart(points, [low, high], now, height = 140) {
  const sorted = [...points].sort((one, other) => one[0] - other[0]);
  const rows = ticks(Math.max(...sorted.map(([, found]) => found), 1), 3);
  return figure("Categories that other cuts would have found", height, (width) => {
    const x = (value) => LEFT + ((width - LEFT - 12) * (value - low)) / (high - low || 1);
    const y = (value) => height - BOTTOM - ((height - BOTTOM - TOP) * value) / rows.at(-1);
    return [
      scale(rows, y, width),
      line(x(now), TOP, x(now), height - BOTTOM, "cut"),
      words(x(now), height - 8, "middle", `cut ${score(now)}`),
      svg("polyline", { class: "line new", points: sorted.map(([cut, found]) => `${x(cut)},${y(found)}`).join(" ") }),
      sorted.map(([cut, found]) => svg("circle", { class: "dot", cx: x(cut), cy: y(found), r: 4 })),
    ];
  });
}

/** A chart with its title, and a legend if it has one. */
export function captioned(title, chart, legend = []) {
  return h("figure", {}, h("figcaption", {}, h("b", {}, title),
    legend.map(([kind, text]) => h("span", { class: `legend ${kind}` }, text))), chart);
}
