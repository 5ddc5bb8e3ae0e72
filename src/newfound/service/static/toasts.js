/** Short messages at the edge of the page, and the same for screen readers. */

import { button, h } from "./dom.js";

const STAYS = 8000; // milliseconds; one that is read or pointed at stays longer
const AT_MOST = 3;

/** Say something to screen readers only. */
export function announce(text) {
  const said = document.getElementById("said");
  said.textContent = said.textContent === text ? `${text}\u00a0` : text; // the same words twice are said twice
}

/**
 * Show a message; the returned handle changes or closes it.
 *
 * @param {string} text
 * @param {{kind?: string, actions?: Array<[string, function()]>, stays?: boolean}} options `kind` "error" stays until
 *   it is closed.
 */
export function toast(text, { kind = "note", actions = [], stays = kind === "error" } = {}) {
  const words = h("p", {}, text);
  const offered = actions.map(([label, act]) => button(label, () => (close(), act()), { class: "button text" }));
  const shut = button("×", () => close(), { class: "button text", "aria-label": "Close this message" });
  const element = h("div", { class: `toast ${kind}${stays ? "" : " passing"}`, role: kind === "error" ? "alert" : null }, words, offered, shut);
  const region = document.getElementById("toasts");
  let timer = 0;
  const close = () => (clearTimeout(timer), element.remove());
  const wait = () => {
    clearTimeout(timer);
    if (!stays) timer = setTimeout(() => (element.matches(":hover, :focus-within") ? wait() : close()), STAYS);
  };
  region.append(element);
  while (region.children.length > AT_MOST) (region.querySelector(".passing:not(:last-child)") ?? region.firstElementChild).remove();
  if (kind !== "error") announce(text);
  wait();
  return { close, say: (changed) => (words.textContent = changed) };
}

/** An error as a message; a request that was called off is none. */
export function complain(error) {
  if (error.name === "AbortError") return;
  if (!("status" in error)) throw error;
  toast(error.message, { kind: "error" });
}
