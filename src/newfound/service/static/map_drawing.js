/** The map on its canvas: dots for images, a picture for each category that there is room for, names that fit. */

const APART = 22; // pixels between two names
const [PICTURE, MARK] = [20, 7]; // the radius of a category with its picture, and of one that there is no room for

/** Draw everything once. `look` holds the labels of categories, and what is chosen, pointed at and lassoed. */
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
  const size = (point) => look.labels.sizes.get(point.id) ?? 0;
  const largest = categories.sort((one, other) => size(other) - size(one));
  makeRoom(largest, look);
  for (const point of [...largest].reverse()) marker(pen, point, look, colours);
  names(pen, largest, look, colours);
  if (look.at) ring(pen, look.at, (look.at.radius ?? 3) + 5, colours.ink, 2);
  if (look.lasso.length > 1) loop(pen, look.lasso, colours);
}

/** The style sheet's colours, and a hue of its own for each category. */
function coloursOf(canvas) {
  const style = getComputedStyle(canvas);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const of = (category, alpha = 1) => `hsl(${(category * 137.5) % 360} 45% ${dark ? 65 : 45}% / ${alpha})`;
  const named = (name) => style.getPropertyValue(name).trim();
  const [ink, paper, known, discovered] = ["--ink", "--card", "--known", "--new"].map(named);
  return { of, ink, paper, known, discovered, font: style.fontFamily };
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

/** Give each category its radius: the largest ones first, a picture where none is yet. */
function makeRoom(categories, look) {
  const pictured = [];
  for (const point of categories) {
    const free = pictured.every((other) => Math.hypot(other.left - point.left, other.top - point.top) > 2 * PICTURE);
    point.radius = free && look.labels.picture(point.id) ? PICTURE : MARK;
    if (point.radius === PICTURE) pictured.push(point);
  }
}

function marker(pen, point, look, colours) {
  const known = look.labels.origins.get(point.id) === "known";
  dot(pen, point, point.radius + 2, colours.paper);
  if (point.radius === PICTURE) portrait(pen, point, look.labels.picture(point.id));
  else if (!known) dot(pen, point, point.radius, colours.discovered);
  ring(pen, point, point.radius - 1, known ? colours.known : colours.discovered, 3);
}

/** The middle of a picture, in a circle. */
function portrait(pen, { left, top, radius }, picture) {
  const side = Math.min(picture.naturalWidth, picture.naturalHeight);
  pen.save();
  circle(pen, { left, top }, radius);
  pen.clip();
  pen.drawImage(picture, (picture.naturalWidth - side) / 2, (picture.naturalHeight - side) / 2, side, side,
    left - radius, top - radius, 2 * radius, 2 * radius);
  pen.restore();
}

/** Names of the largest categories first, each only where no other name or picture is: at the right, or at the left. */
function names(pen, categories, look, colours) {
  pen.font = `600 13px ${colours.font}`;
  pen.lineWidth = 4;
  pen.lineJoin = "round";
  const taken = categories.filter(({ radius }) => radius === PICTURE)
    .map(({ left, top, radius }) => [left - radius, top, 2 * radius, radius + APART / 2]);
  const isFree = (left, top, wide) => left > 0 && left + wide < pen.canvas.clientWidth &&
    !taken.some(([x, y, w, reach]) => left < x + w && x < left + wide && Math.abs(y - top) < reach);
  for (const point of categories) {
    const name = look.labels.names.get(point.id);
    if (!name) continue;
    const letters = [...name];
    const short = letters.length > 24 ? `${letters.slice(0, 23).join("")}…` : name;
    const wide = pen.measureText(short).width;
    const beside = point.radius + 5;
    const left = [point.left + beside, point.left - beside - wide].find((start) => isFree(start, point.top, wide));
    if (left === undefined) continue;
    taken.push([left, point.top, wide, APART]);
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
