/** The map on its canvas: dots for images, rings for known categories, discs for discovered ones, names that fit. */

const APART = 22; // pixels between two names

/** Draw everything once. `look` holds the names and origins of categories, what is chosen, pointed at and lassoed. */
export function draw(canvas, plane, look) {
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  plane.place(width, height);
  const colours = coloursOf(canvas);
  const sightings = plane.points.filter((point) => point.kind === "sighting");
  const categories = plane.points.filter((point) => point.kind === "category");
  for (const point of sightings) dot(pen, point, look.chosen.has(point.id) ? 6 : 3.5, colours.of(point.category, 0.75));
  for (const point of sightings.filter(({ id }) => look.chosen.has(id))) ring(pen, point, 6, colours.ink, 2);
  for (const point of categories) marker(pen, point, look.origins.get(point.id) === "known", colours);
  names(pen, categories, look, colours);
  if (look.at) ring(pen, look.at, 11, colours.ink, 2);
  if (look.lasso.length > 1) loop(pen, look.lasso, colours);
}

/** The style sheet's colours, and a hue of its own for each category. */
function coloursOf(canvas) {
  const style = getComputedStyle(canvas);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const of = (category, alpha = 1) => `hsl(${(category * 137.5) % 360} 45% ${dark ? 65 : 45}% / ${alpha})`;
  const named = (name) => style.getPropertyValue(name).trim();
  return { of, ink: named("--ink"), paper: named("--card"), soft: named("--soft"), font: style.fontFamily };
}

function circle(pen, point, radius) {
  pen.beginPath();
  pen.arc(point.left, point.top, radius, 0, 2 * Math.PI);
}

function dot(pen, point, radius, colour) {
  circle(pen, point, radius);
  pen.fillStyle = colour;
  pen.fill();
}

function ring(pen, point, radius, colour, width) {
  circle(pen, point, radius);
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.stroke();
}

function marker(pen, point, known, colours) {
  dot(pen, point, 8, colours.paper);
  if (known) ring(pen, point, 6, colours.of(point.id), 3);
  else dot(pen, point, 7, colours.of(point.id));
}

/** Names of the largest categories first, each only where no other name is. */
function names(pen, categories, look, colours) {
  pen.font = `600 13px ${colours.font}`;
  pen.lineWidth = 4;
  pen.lineJoin = "round";
  const taken = [];
  const size = (point) => look.sizes.get(point.id) ?? 0;
  for (const point of [...categories].sort((one, other) => size(other) - size(one))) {
    const name = look.names.get(point.id);
    if (!name) continue;
    const short = name.length > 24 ? `${name.slice(0, 23)}…` : name;
    const wide = pen.measureText(short).width;
    const left = point.left + 12 + wide > pen.canvas.clientWidth ? point.left - 12 - wide : point.left + 12;
    if (taken.some(([x, y, w]) => left < x + w && x < left + wide && Math.abs(y - point.top) < APART)) continue;
    taken.push([left, point.top, wide]);
    pen.strokeStyle = colours.paper;
    pen.strokeText(short, left, point.top + 4);
    pen.fillStyle = colours.ink;
    pen.fillText(short, left, point.top + 4);
  }
}

function loop(pen, lasso, colours) {
  pen.beginPath();
  lasso.forEach(([left, top]) => pen.lineTo(left, top));
  pen.closePath();
  pen.setLineDash([5, 4]);
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 1.5;
  pen.stroke();
  pen.setLineDash([]);
}
