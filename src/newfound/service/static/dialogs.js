/** Dialogs: the browser's own, so that focus stays inside, Escape closes, and focus returns where it was. */

import { ApiError, post } from "./api.js";
import { button, fill, h } from "./dom.js";
import { bound, enable, enabled } from "./keys.js";

/**
 * Open a dialog.
 *
 * @param {string} title
 * @param {function(function(*)): Array} content gets the function that closes with a value; returns the children.
 * @param {{wide?: boolean, dismissable?: boolean, keys?: function(KeyboardEvent)}} options `keys` hears what is pressed.
 * @returns {Promise<*>} the value, or null if it was dismissed.
 */
export function dialog(title, content, { wide = false, dismissable = true, keys = null } = {}) {
  return new Promise((resolve) => {
    let value = null;
    const element = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": "dialog-title" });
    const close = (chosen = null) => ((value = chosen), element.close());
    const shut = dismissable && button("×", () => close(), { class: "button quiet", "aria-label": "Close" });
    const head = h("header", {}, h("h2", { id: "dialog-title", dir: "auto" }, title), shut);
    fill(element, head, content(close));
    if (keys) element.addEventListener("keydown", keys);
    element.addEventListener("cancel", (event) => dismissable || event.preventDefault());
    element.addEventListener("click", (event) => dismissable && event.target === element && close());
    element.addEventListener("close", () => (element.remove(), resolve(value)));
    document.body.append(element);
    element.showModal();
  });
}

/** All shortcuts of what is open, and the switch that turns single keys off. */
export function showHelp() {
  if (document.querySelector("dialog[open]")) return;
  dialog("Keyboard and help", () => [
    h("p", {}, "Every image that is observed joins a category or founds one. Name what was found, merge what belongs " +
      "together, split what does not; all of it can be undone."),
    h("div", { class: "keys" }, bound().map(([title, keys]) =>
      h("section", {}, h("h3", {}, title), h("dl", {}, keys.map(([key, label]) =>
        h("div", {}, h("dt", {}, key.split(" ").map((part) => h("kbd", {}, part))), h("dd", {}, label))))))),
    h("label", { class: "check" },
      h("input", { type: "checkbox", checked: enabled(), on: { change: (event) => enable(event.target.checked) } }),
      "Shortcuts of a single key"),
  ], { wide: true });
}

/** Ask for the service's token until it is right. */
export function login() {
  return dialog("This service needs a token", (close) => {
    const input = h("input", {
      type: "password", id: "token", autocomplete: "current-password", required: true, autofocus: true,
    });
    const wrong = h("p", { class: "wrong", role: "alert", id: "wrong" });
    const submit = async (event) => {
      event.preventDefault();
      try {
        await post("v1/login", { token: input.value });
        close(true);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        wrong.textContent = error.message;
        input.select();
      }
    };
    return [
      h("p", {}, "It is the one that newfound serve was started with."),
      h("form", { class: "stack", on: { submit } },
        h("label", { for: "token" }, "Token"), input, wrong,
        h("button", { class: "button primary", type: "submit" }, "Open")),
    ];
  }, { dismissable: false });
}
