/** Shortcuts of one key (or "g" and one more), which the help lists; they can be switched off. */

const SWITCH = "newfound-shortcuts";
const PREFIX = "g";
const SOON = 1500; // milliseconds between the prefix and what follows it
const layers = [];
let prefixed = -Infinity; // when the prefix was pressed

/**
 * Bind keys while a view is open.
 *
 * @param {string} title what the help calls them.
 * @param {Object<string, [string, function()]>} keys each key's meaning and what it does; null for one that the help
 *   lists and another listener handles.
 */
export function bind(title, keys, signal) {
  const layer = { title, keys };
  layers.push(layer);
  signal?.addEventListener("abort", () => layers.splice(layers.indexOf(layer), 1));
}

/** All that is bound, for the help: [title, [[key, meaning], ...]] a layer, the newest first. */
export function bound() {
  const listed = (keys) => Object.entries(keys).map(([key, [label]]) => [key, label]);
  return [...layers].reverse().map(({ title, keys }) => [title, listed(keys)]);
}

/** Whether single keys do anything: who dictates or types by accident may not want it. */
export function enabled() {
  return localStorage.getItem(SWITCH) !== "off";
}

export function enable(on) {
  localStorage.setItem(SWITCH, on ? "on" : "off");
}

/** Whether an element needs a key itself: what is typed into needs all, a slider and a choice of several the arrows. */
function needs(target, key) {
  if (target.closest("dialog, select, textarea, [contenteditable]")) return true;
  if (target.tagName !== "INPUT" || ["checkbox", "file"].includes(target.type)) return false;
  return !["range", "radio"].includes(target.type) || key.startsWith("Arrow");
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || needs(event.target, event.key)) return;
  const undoing = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.shiftKey;
  if (!undoing && (event.ctrlKey || event.metaKey || !enabled())) return;
  const key = event.shiftKey || event.key.length > 1 ? event.key : event.key.toLowerCase(); // Caps Lock changes nothing
  const second = event.timeStamp - prefixed < SOON;
  prefixed = key === PREFIX && !second ? event.timeStamp : -Infinity;
  const name = undoing ? "u" : second ? `${PREFIX} ${key}` : key;
  const action = layers.findLast(({ keys }) => keys[name]?.[1])?.keys[name][1];
  if (!action) return;
  event.preventDefault();
  action();
});
