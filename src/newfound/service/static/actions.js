/** What people do to categories: each says what it did and offers to take it back. */

import { patch, post } from "./api.js";
import { plural } from "./format.js";
import { complain, toast } from "./toasts.js";

const UNDONE = {
  renamed: "The old name is back.", merged: "The categories are apart again.", split: "The images are back together.",
  moved: "The images are back where they were.", ignored: "Marked as before.", promoted: "Marked as before.",
};

let offered = null; // the message that offers to undo: of several, only the last one's would do what it says

/** Do something, say so, offer to undo it; null if the service refused. */
async function act(request, said, actions = []) {
  try {
    const answer = await request;
    const more = actions.map(([label, go]) => [label, () => go(answer)]);
    offered?.close();
    offered = toast(said(answer), { actions: [...more, ["Undo", undo]] });
    return answer;
  } catch (error) {
    complain(error);
    return null;
  }
}

const visit = ["Open", (category) => (location.hash = `#/category/${category.id}`)];

export function rename(id, name) {
  return act(patch(`v1/categories/${id}`, { name }), (category) => `Now called ${category.name}.`);
}

/** "ignored" or "promoted", on or off. */
export function flag(category, name, on) {
  const word = { ignored: "ignored", promoted: "to be taught next time" }[name];
  return act(patch(`v1/categories/${category.id}`, { [name]: on }),
    (now) => `${now.name} is ${on ? "" : "no longer "}${word}.`);
}

export function merge(category, other) {
  return act(post("v1/categories/merge", { categories: [category.id, other.id] }),
    (whole) => `${other.name} and ${category.name} are one: ${whole.name}.`);
}

export function split(id, sightings) {
  return act(post(`v1/categories/${id}/split`, { sightings }),
    (made) => `${plural(sightings.length, "image")} split off as ${made.name}.`, [visit]);
}

export function move(sightings, target) {
  return act(post("v1/move", { sightings, category: target.id }),
    (home) => `${plural(sightings.length, "image")} moved to ${home.name}.`, [visit]);
}

/** Take back what was done last, whoever did it. */
export async function undo() {
  try {
    const { undone } = await post("v1/undo");
    offered?.close();
    toast(UNDONE[undone] ?? "Undone.");
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}
