/** What people do to categories: each says what it did and offers to take it back. */

import { get, patch, post } from "./api.js";
import { plural, within } from "./format.js";
import { listen } from "./live.js";
import { complain, toast } from "./toasts.js";

const REFUSED = 422; // to undo, for one reason only: nothing is left
const UNDONE = {
  renamed: "The old name is back.", merged: "The categories are apart again.", split: "The images are back together.",
  moved: "The images are back where they were.", ignored: "Marked as before.", promoted: "Marked as before.",
};

let offered = null; // the message that offers to undo: of several, only the last one's would do what it says
let mine = null; // the kind of edit that this page has asked for and not yet heard of

/** What someone else has done since is what "Undo" would take back: so it is offered no longer. */
listen({
  edit: ({ kind }) => {
    if (kind !== mine) offered?.close();
    mine = null;
  },
});

/** Do something, say so, offer to undo it; null if the service refused. */
async function act(kind, ask, said, actions = []) {
  try {
    mine = kind;
    const answer = await ask();
    const more = actions.map(([label, go]) => [label, () => go(answer)]);
    offered?.close();
    offered = toast(said(answer), { actions: [...more, ["Undo", undo]] });
    return answer;
  } catch (error) {
    mine = null;
    complain(error);
    return null;
  }
}

const visit = ["Open", (category) => (location.hash = `#/category/${category.id}`)];

/** Give a category a name; if another has it already, `mergeWith` is offered that one. */
export async function rename(id, name, mergeWith) {
  const { items } = await get("v1/categories", { q: name, ignored: true, limit: 500 }).catch(() => ({ items: [] }));
  const twin = items.find((other) => other.id !== id && other.name === name);
  const called = twin ? `Another category is called ${within(name)} too.` : `Now called ${within(name)}.`;
  return act("renamed", () => patch(`v1/categories/${id}`, { name }), () => called,
    twin ? [["Merge the two", () => mergeWith(twin)]] : []);
}

/** "ignored" or "promoted", on or off. */
export function flag(category, name, on) {
  const word = { ignored: "ignored", promoted: "to be taught next time" }[name];
  return act(name, () => patch(`v1/categories/${category.id}`, { [name]: on }),
    (now) => `${within(now.name)} is ${on ? "" : "no longer "}${word}.`);
}

export function merge(category, other) {
  return act("merged", () => post("v1/categories/merge", { categories: [category.id, other.id] }),
    (whole) => `${within(other.name)} and ${within(category.name)} are one: ${within(whole.name)}.`);
}

export function split(id, sightings) {
  return act("split", () => post(`v1/categories/${id}/split`, { sightings }),
    (made) => `${plural(sightings.length, "image")} split off as ${within(made.name)}.`, [visit]);
}

export function move(sightings, target) {
  return act("moved", () => post("v1/move", { sightings, category: target.id }),
    (home) => `${plural(sightings.length, "image")} moved to ${within(home.name)}.`, [visit]);
}

/** Take back what was done last, whoever did it. */
export async function undo() {
  try {
    const { undone } = await post("v1/undo");
    offered?.close();
    toast(UNDONE[undone] ?? "Undone.");
    return true;
  } catch (error) {
    if (error.status === REFUSED) toast("There is nothing to undo.");
    else complain(error);
    return false;
  }
}
