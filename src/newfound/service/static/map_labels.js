/** What the map knows of the categories on it: names, origins, sizes, and a picture of each. */

import { get } from "./api.js";

const PAGE = 500; // categories that the service gives at once
const MOST = 1000; // that it puts on a map of 2,000 points, the largest

/** Facts by category, and pictures that are fetched when they are first drawn. */
export class Labels {
  #pictures = new Map();

  /** @param {function()} arrived is called when a picture has been loaded. */
  constructor(arrived) {
    this.names = new Map();
    this.origins = new Map();
    this.sizes = new Map();
    this.exemplars = new Map();
    this.arrived = arrived;
  }

  /** Ask the service for the largest categories. */
  async load(signal) {
    let cursor = null;
    let told = 0;
    do {
      const page = await get("v1/categories", { sort: "size", ignored: true, limit: PAGE, cursor }, signal);
      for (const { id, name, origin, count, exemplars } of page.items) {
        this.names.set(id, name);
        this.origins.set(id, origin);
        this.sizes.set(id, count);
        this.exemplars.set(id, exemplars);
      }
      told += page.items.length;
      cursor = page.next;
    } while (cursor !== null && told < MOST);
  }

  /** What a category is called. */
  name(category) {
    return this.names.get(category) ?? `category ${category}`;
  }

  /** The picture of a category if it is there; if not, it is sent for, and null. */
  picture(category) {
    const [number] = this.exemplars.get(category) ?? [];
    if (number === undefined) return null;
    let picture = this.#pictures.get(number);
    if (!picture) {
      picture = new Image();
      picture.addEventListener("load", this.arrived);
      picture.src = `v1/sightings/${number}/thumbnail`;
      this.#pictures.set(number, picture);
    }
    return picture.complete && picture.naturalWidth ? picture : null;
  }
}
