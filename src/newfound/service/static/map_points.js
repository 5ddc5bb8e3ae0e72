/** Where points are on the map and on the screen, and which are meant: geometry only. */

const MARGIN = 36; // pixels kept free around the points
const NEAREST = 40; // the largest zoom

/** A view of the plane: `zoom` 1 shows everything, the centre is in the points' own unit square. */
export class Plane {
  /**
   * @param {Array<Object>} points each with kind, id, x and y.
   * @param {Plane|null} before the plane that these take the place of: what one looks at stays, and no axis turns round.
   */
  constructor(points, before = null) {
    const [across, up] = ["x", "y"].map((axis) => scaled(points, axis, before?.values(axis)));
    this.points = points.map((point, at) => ({ ...point, u: across[at], v: up[at] }));
    this.zoom = before?.zoom ?? 1;
    this.centre = before?.centre ?? { u: 0.5, v: 0.5 };
    this.size = before?.size ?? [1, 1];
    this.middle = before?.middle ?? [0, 0];
  }

  /** Where each point is along an axis, by its name. */
  values(axis) {
    return new Map(this.points.map((point) => [nameOf(point), axis === "x" ? point.u : point.v]));
  }

  /** Put every point on a screen of this size. */
  place(width, height) {
    this.size = [(width - 2 * MARGIN) * this.zoom, (height - 2 * MARGIN) * this.zoom];
    this.middle = [width / 2, height / 2];
    for (const point of this.points) {
      point.left = this.middle[0] + (point.u - this.centre.u) * this.size[0];
      point.top = this.middle[1] - (point.v - this.centre.v) * this.size[1];
    }
  }

  /** Zoom by a factor around a place on the screen, or its middle; never smaller than everything. */
  zoomBy(factor, [left, top] = this.middle) {
    const zoom = Math.min(NEAREST, Math.max(1, this.zoom * factor));
    const part = 1 - this.zoom / zoom; // of the way from the middle to that place
    this.#look((left - this.middle[0]) * part, (top - this.middle[1]) * part);
    this.zoom = zoom;
    if (zoom === 1) this.centre = { u: 0.5, v: 0.5 };
  }

  /** Follow a hand that moves the map by so many pixels. */
  moveBy(right, down) {
    this.#look(-right, -down);
  }

  /** Bring a point to the middle. */
  centreOn(point) {
    this.centre = { u: point.u, v: point.v };
  }

  #look(right, down) {
    const inside = (value) => Math.min(1, Math.max(0, value));
    this.centre = { u: inside(this.centre.u + right / this.size[0]), v: inside(this.centre.v - down / this.size[1]) };
  }

  /** The point nearest to a place on the screen, if one is within reach; categories lie on top. */
  at(left, top, reach = 12) {
    const distance = (point) => Math.hypot(point.left - left, point.top - top) - (point.radius ?? 0);
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

const nameOf = ({ kind, id }) => `${kind} ${id}`;

/** The points' places along an axis from 0 to 1; turned round if that agrees better with where they were before. */
function scaled(points, axis, before) {
  const values = points.map((point) => point[axis]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const places = values.map((value) => (high > low ? (value - low) / (high - low) : 0.5));
  const agreed = points.reduce((sum, point, at) => {
    const was = before?.get(nameOf(point));
    return was === undefined ? sum : sum + (was - 0.5) * (places[at] - 0.5);
  }, 0);
  return agreed < 0 ? places.map((place) => 1 - place) : places;
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
