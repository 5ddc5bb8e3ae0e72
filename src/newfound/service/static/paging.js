/** Lists without end: the next page is asked for when the end of the last one comes near. */

import { get } from "./api.js";
import { button, fill, h, state } from "./dom.js";

const NEAR = "900px"; // how far below the window the next page is asked for

/** Pages of an address, shown one after the other in a list. */
export class Pages {
  #abort = null;
  #cursor = null;
  #place = "";
  #query = {};
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

  /** Start again, with another query if one is given; what is shown stays until the answer is there. */
  async load(place = this.#place, query = this.#query) {
    [this.#place, this.#query, this.#cursor] = [place, query, null];
    this.list.setAttribute("aria-busy", "true");
    await this.#fetch();
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
      const page = await get(this.#place, { ...this.#query, cursor: this.#cursor }, this.#abort.signal);
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
