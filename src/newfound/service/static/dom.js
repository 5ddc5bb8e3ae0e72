/** Elements from code. Text is always text and attributes are set one by one, so no name can become markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element.
 *
 * @param {string} tag
 * @param {Object} attributes `on` holds listeners, `data` the data-* attributes; false and null leave one out.
 * @param {...(Node|string|number|null|false|Array)} children strings become text nodes.
 */
export function h(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(element, { on = {}, data = {}, ...attributes }, children) {
  for (const [type, listener] of Object.entries(on)) element.addEventListener(type, listener);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== false && child !== undefined);
}

/** Replace all that is inside an element. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** A button; `key` is the shortcut that is shown on it, which someone else has to bind. */
export function button(label, press, { key = null, ...attributes } = {}) {
  const name = { class: "button", type: "button", "aria-keyshortcuts": key, ...attributes };
  return h("button", { ...name, on: { click: press } }, label, key && h("kbd", { "aria-hidden": "true" }, key));
}

/** One of a few things to choose, side by side: `options` are the texts by value. */
export function segments(label, name, options, chosen, choose) {
  const one = ([value, text]) => {
    const on = { change: () => choose(value) };
    return h("label", {}, h("input", { type: "radio", name, value, checked: value === chosen, on }), text);
  };
  return h("fieldset", { class: "segments" }, h("legend", { class: "visually-hidden" }, label),
    Object.entries(options).map(one));
}

/** The picture of a sighting; one that cannot be had leaves a calm patch. */
export function thumbnail(number, { size = 160, alt = "", loading = "lazy" } = {}) {
  const image = h("img", { alt, loading, decoding: "async", draggable: "false" });
  const named = alt ? { role: "img", "aria-label": alt } : { "aria-hidden": "true" };
  image.addEventListener("error", () => image.replaceWith(h("span", { class: "missing", ...named })));
  image.src = `v1/sightings/${number}/thumbnail?size=${size}`;
  return image;
}

/** "known" or "discovered", told apart by colour and by shape. */
export function badge(category) {
  const known = category.origin === "known";
  const more = (category.promoted && " · to be taught") || (category.ignored && " · ignored");
  return h("span", { class: known ? "badge" : "badge new" }, known ? "known" : "discovered", more);
}

/** What a view shows instead of its content: nothing there, still loading, or an error with a way out. */
export function state(kind, title, text = "", action = null) {
  const role = kind === "error" ? "alert" : null;
  return h("div", { class: `state ${kind}`, role }, h("h2", {}, title), text && h("p", {}, text), action);
}

/** Where images can be put in: words for those who can drop something, and for those who can only press. */
export function dropZone() {
  return h("label", { class: "zone write", for: "files" },
    h("b", { class: "by-mouse" }, "Drop images anywhere"), h("span", { class: "by-mouse" }, "or press to choose some."),
    h("b", { class: "by-touch" }, "Choose images"), h("span", {}, "Each joins a category or founds one."));
}

/**
 * Remember which of some elements has the focus, by what `name` says of it.
 *
 * @returns {function()} gives the focus to the one of that name, else to the first; nothing if none had it.
 */
export function holdFocus(root, selector, name) {
  const held = root.contains(document.activeElement) ? name(document.activeElement) : null;
  return () => {
    if (held === null) return;
    const all = [...root.querySelectorAll(selector)];
    (all.find((element) => name(element) === held) ?? all[0])?.focus({ preventScroll: true });
  };
}

/** Wait until calls have stopped for a while, then make the last one. */
export function debounced(call, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}
