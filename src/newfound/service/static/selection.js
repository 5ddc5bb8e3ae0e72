/** Choosing among pictures: click, shift-click, and all of it by keyboard, as in a list of files. */

import { announce } from "./toasts.js";
import { plural } from "./format.js";

const STEPS = {
  ArrowRight: () => 1, ArrowLeft: () => -1, ArrowDown: (columns) => columns, ArrowUp: (columns) => -columns,
};

/** The selection in a grid whose children have role "option" and data-number; one of them can be tabbed to. */
export class Selection {
  #anchor = null;

  /**
   * @param {HTMLElement} grid a listbox.
   * @param {function(Set<number>)} changed hears of every change.
   * @param {function(number)} open is asked to show a picture, by Enter or a double click.
   */
  constructor(grid, { changed, open }) {
    this.grid = grid;
    this.numbers = new Set();
    this.changed = changed;
    grid.addEventListener("click", (event) => this.#clicked(event));
    grid.addEventListener("dblclick", (event) => open(numberOf(event.target.closest("[role=option]"))));
    grid.addEventListener("keydown", (event) => this.#pressed(event, open));
    grid.addEventListener("focusin", (event) => this.#roam(event.target));
  }

  /** Forget the selection. */
  clear() {
    this.#choose([...this.numbers], false);
  }

  /** Select all that are loaded. */
  all() {
    this.#choose(this.#options().map(numberOf), true);
  }

  /** Make sure that the grid can be tabbed into, and that what is gone is not selected. */
  settle() {
    const there = new Set(this.#options().map(numberOf));
    for (const number of this.numbers) if (!there.has(number)) this.numbers.delete(number);
    if (!this.grid.querySelector("[tabindex='0']")) this.grid.firstElementChild?.setAttribute("tabindex", "0");
    this.changed(this.numbers);
  }

  #options() {
    return [...this.grid.children];
  }

  #clicked(event) {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    if (event.shiftKey) return this.#extend(option);
    this.#anchor = option;
    this.#choose([numberOf(option)], !this.numbers.has(numberOf(option)));
  }

  #pressed(event, open) {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    if (event.key in STEPS) this.#step(option, STEPS[event.key], event.shiftKey);
    else if (event.key === "Home") this.grid.firstElementChild.focus();
    else if (event.key === "End") this.grid.lastElementChild.focus();
    else if (event.key === " ") this.#clicked(event);
    else if (event.key === "Enter") open(numberOf(option));
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) this.all();
    else return;
    event.preventDefault();
  }

  #step(option, by, extending) {
    const options = this.#options();
    const columns = getComputedStyle(this.grid).gridTemplateColumns.split(" ").length;
    const at = options.indexOf(option) + by(columns);
    if (!options[at]) return;
    options[at].focus();
    if (!extending) return;
    this.#anchor ??= option;
    this.#extend(options[at]);
  }

  /** Everything from the last single choice to here. */
  #extend(option) {
    const options = this.#options();
    const ends = [options.indexOf(this.#anchor ?? option), options.indexOf(option)].sort((a, b) => a - b);
    this.#choose(options.slice(Math.max(0, ends[0]), ends[1] + 1).map(numberOf), true);
  }

  #choose(numbers, on) {
    const meant = new Set(numbers);
    for (const number of meant) on ? this.numbers.add(number) : this.numbers.delete(number);
    for (const option of this.#options()) {
      if (meant.has(numberOf(option))) option.setAttribute("aria-selected", String(on));
    }
    announce(`${plural(this.numbers.size, "image")} selected`);
    this.changed(this.numbers);
  }

  #roam(option) {
    this.grid.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    option.setAttribute("tabindex", "0");
  }
}

function numberOf(option) {
  return Number(option.dataset.number);
}
