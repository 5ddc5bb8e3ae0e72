/** Choosing a category: suggestions at first, a search as one types, arrows and Enter. */

import { get } from "./api.js";
import { badge, debounced, fill, h, thumbnail } from "./dom.js";
import { dialog } from "./dialogs.js";
import { plural } from "./format.js";
import { complain } from "./toasts.js";

/**
 * Ask for a category.
 *
 * @param {string} title what it is for.
 * @param {{suggested?: Promise<Array<Object>>, without?: number}} options categories to offer before a search, and
 *   one to leave out. The dialog does not wait for them.
 * @returns {Promise<Object|null>} the category, or null.
 */
export function pickCategory(title, { suggested = Promise.resolve([]), without = null } = {}) {
  return dialog(title, (close) => {
    const list = h("ul", { role: "listbox", id: "choices", "aria-label": "Categories", class: "choices" });
    const none = h("p", { class: "soft", role: "status" });
    const input = h("input", {
      type: "search", role: "combobox", "aria-expanded": "true", "aria-controls": "choices", "aria-label": "Search",
      "aria-autocomplete": "list", placeholder: "Search by name or number", autocomplete: "off",
      autofocus: true, maxlength: 200, dir: "auto",
    });
    let offered = [];
    let active = 0;

    const mark = (index) => {
      active = Math.max(0, Math.min(index, offered.length - 1));
      [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === active)));
      const chosen = list.children[active];
      input.setAttribute("aria-activedescendant", chosen?.id ?? "");
      chosen?.scrollIntoView({ block: "nearest" });
    };
    const offer = (categories) => {
      offered = categories.filter((category) => category.id !== without);
      fill(list, offered.map((category) => choice(category, () => close(category))));
      none.textContent = offered.length ? "" : "No category is called that.";
      mark(0);
    };
    const search = async () => {
      const q = input.value.trim();
      try {
        const first = q ? [] : await suggested;
        const found = first.length ? first : (await get("v1/categories", { q, sort: "size", limit: 20 })).items;
        if (q === input.value.trim()) offer(found); // else an answer to what is typed by now is on its way
      } catch (error) {
        complain(error);
      }
    };
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    const searchSoon = debounced(search, 120);
    input.addEventListener("input", () => {
      offered = []; // Enter chooses nothing that was not found for what is typed
      searchSoon();
    });
    input.addEventListener("keydown", (event) => {
      if (event.key in steps) mark(active + steps[event.key]);
      else if (event.key === "Enter" && offered[active]) close(offered[active]);
      else return;
      event.preventDefault();
    });
    search();
    return [input, none, list];
  });
}

function choice(category, choose) {
  const [first] = category.exemplars ?? [];
  return h("li", { role: "option", id: `choice-${category.id}`, "aria-selected": "false", on: { click: choose } },
    first === undefined ? h("span", { class: "patch" }) : thumbnail(first),
    h("span", { class: "name", dir: "auto" }, category.name),
    h("span", { class: "soft" }, plural(category.count, "image"), " ", badge(category)));
}
