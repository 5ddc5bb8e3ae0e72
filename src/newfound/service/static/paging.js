/** Lists without end: the next page is asked for when the end of the last one comes near. */

import { get } from "./api.js";
import { button, fill, h, state } from "./dom.js";

const NEAR = "900px"; // how far below the window the next page is asked for
const MOST = 500; // items that the service gives at once

/** Pages of an address, shown one after the other in a list. */
export class Pages {
  #abort = null;
  #cursor = null;
  #place = "";
  #query = {};
  #first = 0; // items of the first page
  #observer;

  /**
   * @param {HTMLElement} list where the items go.
   * @param {function(Array<Object>)} show puts items of a page at the end of the list.
   * @param {function(Object)} first hears of each first page: it clears the list, or says that there is nothing.
   * @param {AbortSignal} signal stops it.
   */
  constructor(list, { show, first, signal }) {
    this.list = list;
    this.show = show;
    this.first = first;
    this.foot = h("div", { class: "foot" });
    list.after(this.foot);
    this.#observer = new IntersectionObserver(([entry]) => entry.isIntersecting && this.#more(), { rootMargin: NEAR });
    signal.addEventListener("abort", () => (this.#abort?.abort(), this.#observer.disconnect()));
  }

  /** Start again, with `many` items at least; what is shown stays until the answer is there. */
  async load(place, query, many = 0) {
    [this.#place, this.#query, this.#cursor] = [place, query, null];
    this.#first = Math.min(MOST, Math.max(query.limit, many));
    this.list.setAttribute("aria-busy", "true");
    await this.#fetch();
  }

  /** The same again, as much of it as is shown. */
  reload() {
    return this.load(this.#place, this.#query, this.list.children.length);
  }

  #more() {
    if (this.#cursor !== null) return this.#fetch();
  }

  async #fetch() {
    const fresh = this.#cursor === null;
    this.#abort?.abort();
    this.#abort = new AbortController();
    this.#observer.disconnect();
    const slow = setTimeout(() => fill(this.foot, h("p", { class: "loading", role: "status" }, "Loading…")), 300);
    try {
      const limit = fresh ? this.#first : this.#query.limit;
      const page = await get(this.#place, { ...this.#query, limit, cursor: this.#cursor }, this.#abort.signal);
      if (fresh) this.first(page);
      this.show(page.items);
      this.#cursor = page.next;
      fill(this.foot);
      this.list.removeAttribute("aria-busy");
      if (page.next !== null) this.#observer.observe(this.foot);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!("status" in error)) throw error;
      const again = button("Try again", () => this.#fetch());
      fill(this.foot, state("error", "This could not be loaded", error.message, again));
    } finally {
      clearTimeout(slow);
    }
  }
}
