/** Where points are on the map and on the screen, and which are meant: geometry only. */

const MARGIN = 36; // pixels kept free around the points

/** A view of the plane: `zoom` 1 shows everything, the centre is in the points' own unit square. */
export class Plane {
  constructor(points) {
    const xs = points.map((point) => point.x);
    const ys = points.map((point) => point.y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    this.points = points.map((point) => ({
      ...point, u: (point.x - left) / (right - left || 1), v: (point.y - top) / (bottom - top || 1),
    }));
    this.zoom = 1;
    this.centre = { u: 0.5, v: 0.5 };
  }

  /** Put every point on a screen of this size. */
  place(width, height) {
    const [across, down] = [(width - 2 * MARGIN) * this.zoom, (height - 2 * MARGIN) * this.zoom];
    for (const point of this.points) {
      point.left = width / 2 + (point.u - this.centre.u) * across;
      point.top = height / 2 - (point.v - this.centre.v) * down;
    }
  }

  /** Zoom by a factor; never smaller than everything. */
  zoomBy(factor) {
    this.zoom = Math.min(40, Math.max(1, this.zoom * factor));
    if (this.zoom === 1) this.centre = { u: 0.5, v: 0.5 };
  }

  /** Bring a point to the middle. */
  centreOn(point) {
    this.centre = { u: point.u, v: point.v };
  }

  /** The point nearest to a place on the screen, if one is within reach; categories lie on top. */
  at(left, top, reach = 12) {
    const distance = (point) => Math.hypot(point.left - left, point.top - top) - (point.kind === "category" ? 6 : 0);
    const near = this.points.filter((point) => distance(point) < reach);
    return near.sort((one, other) => distance(one) - distance(other))[0] ?? null;
  }

  /** The nearest point in a direction from another: straight ahead counts more than near. */
  beyond(from, [right, down]) {
    const cost = (point) => {
      const [dx, dy] = [point.left - from.left, point.top - from.top];
      const ahead = dx * right + dy * down;
      const aside = Math.abs(dx * down) + Math.abs(dy * right);
      return ahead <= 0.5 || aside > 2 * ahead ? Infinity : ahead + 2 * aside;
    };
    const best = this.points.reduce((one, other) => (cost(other) < cost(one) ? other : one), from);
    return cost(best) < Infinity ? best : from;
  }

  /** The sightings inside a polygon on the screen. */
  inside(polygon) {
    return this.points.filter((point) => point.kind === "sighting" && within(polygon, point.left, point.top));
  }
}

/** Whether a place is inside a polygon, by the even-odd rule. */
function within(polygon, x, y) {
  let inside = false;
  polygon.forEach(([ax, ay], at) => {
    const [bx, by] = polygon.at(at - 1);
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  });
  return inside;
}
