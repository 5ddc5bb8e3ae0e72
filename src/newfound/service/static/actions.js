/** What people do to categories: each says what it did and offers to take it back. */

import { get, patch, post } from "./api.js";
import { plural, within } from "./format.js";
import { listen } from "./live.js";
import { complain, toast } from "./toasts.js";

const GONE = 422; // to undo: it has been taken back already, or cannot be
const KEPT = 200; // edits that are remembered, the newest
const STORE = "newfound-edits"; // of this tab, so that a reload forgets nothing
const UNDONE = {
  renamed: "The old name is back.", merged: "The categories are apart again.", split: "The images are back together.",
  moved: "The images are back where they were.", ignored: "Marked as before.", promoted: "Marked as before.",
};

let offered = { event: null, close: () => {} }; // the message that offers to take the last edit back
let turn = Promise.resolve(); // kept when all that was to be undone has been answered
let journal = null; // the one that the edits are in: when it was begun
let edits = []; // the numbers of those that were made in this tab and stand, the last one at the end

/** Go on with what this tab has done to a journal, also before a reload. */
export function resume(began) {
  if (began === journal) return;
  const kept = JSON.parse(sessionStorage.getItem(STORE) ?? "{}");
  journal = began;
  edits = kept.journal === began ? kept.edits : [];
}

function remember(numbers) {
  edits = numbers.slice(-KEPT);
  sessionStorage.setItem(STORE, JSON.stringify({ journal, edits }));
}

/** An edit that has been taken back, here or elsewhere, is offered no longer. */
function settle(event) {
  remember(edits.filter((number) => number !== event));
  if (offered.event === event) offered.close();
}

listen({ edit: ({ undoes }) => edits.includes(undoes) && settle(undoes) });

/** Do something, say so, offer to undo just that; null if the service refused. */
async function act(ask, said, actions = []) {
  try {
    const answer = await ask();
    const event = answer.edits.at(-1); // none where all was so already
    const more = actions.map(([label, go]) => [label, () => go(answer)]);
    const back = event === undefined ? [] : [["Undo", () => undo(event)]];
    remember([...edits, ...answer.edits]);
    offered.close(); // messages do not pile up; the key takes older edits back too
    const words = event === undefined ? "Nothing has changed: it was so already." : said(answer);
    offered = { event, ...toast(words, { actions: [...more, ...back] }) };
    return answer;
  } catch (error) {
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
  return act(() => patch(`v1/categories/${id}`, { name }), () => called,
    twin ? [["Merge the two", () => mergeWith(twin)]] : []);
}

/** "ignored" or "promoted", on or off. */
export function flag(category, name, on) {
  const word = { ignored: "ignored", promoted: "to be taught next time" }[name];
  return act(() => patch(`v1/categories/${category.id}`, { [name]: on }),
    (now) => `${within(now.name)} is ${on ? "" : "no longer "}${word}.`);
}

export function merge(category, other) {
  return act(() => post("v1/categories/merge", { categories: [category.id, other.id] }),
    (whole) => `${within(other.name)} and ${within(category.name)} are one: ${within(whole.name)}.`);
}

export function split(id, sightings) {
  return act(() => post(`v1/categories/${id}/split`, { sightings }),
    (made) => `${plural(sightings.length, "image")} split off as ${within(made.name)}.`, [visit]);
}

export function move(sightings, target) {
  return act(() => post("v1/move", { sightings, category: target.id }),
    (home) => `${plural(sightings.length, "image")} moved to ${within(home.name)}.`, [visit]);
}

/**
 * Take back what was done here last, or one edit by its number; others' edits stay.
 *
 * @returns {Promise<boolean>} whether it no longer stands. It does if the service cannot be reached, or if a later edit
 *   has to do with the same: the message then names that.
 */
export async function undo(event = edits.at(-1)) {
  if (event === undefined) {
    toast("Nothing that was done here is left to undo.");
    return false;
  }
  settle(event); // at once: who presses twice means two edits
  turn = turn.catch(() => {}).then(() => takeBack(event)); // in order: the last one may be in the way of those before it
  return turn;
}

async function takeBack(event) {
  try {
    const { undone } = await post("v1/undo", { event });
    toast(UNDONE[undone] ?? "Undone.");
    return true;
  } catch (error) {
    if (error.status !== GONE) remember([...edits, event].sort((one, other) => one - other));
    complain(error);
    return error.status === GONE;
  }
}
