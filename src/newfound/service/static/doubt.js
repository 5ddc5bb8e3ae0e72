/** The doubt queue: one borderline image at a time, one key to decide. */

import * as actions from "./actions.js";
import { get } from "./api.js";
import { showSome } from "./category_head.js";
import { button, debounced, fill, h, state, thumbnail } from "./dom.js";
import { plural, score, within } from "./format.js";
import { bind } from "./keys.js";
import { listen } from "./live.js";
import { announce, complain } from "./toasts.js";

const AHEAD = 5; // pictures fetched before their turn
const PAGE = 50;

/** Show the queue. */
export async function openDoubt(main, { status, signal }) {
  const left = h("span", { class: "soft", role: "status" });
  const stage = h("div", { class: "doubt" });
  fill(main, h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Doubt"), left), stage);
  let queue = [];
  let cursor = null;
  let total = 0;
  const decided = []; // for undo: what was decided here, the last one at the end
  let busy = false;

  const skipped = () => decided.filter(({ event }) => event === null).length; // still in the service's queue

  async function more() {
    const page = await get("v1/doubt", { limit: PAGE, cursor }, signal);
    const gone = new Set(decided.map(({ item }) => item.number));
    queue.push(...page.items.filter((item) => !gone.has(item.number)));
    cursor = page.next;
    total = Math.max(queue.length, page.total - skipped());
  }

  /** What has come meanwhile is next; what was decided elsewhere leaves the queue; what is shown stays, if it may. */
  async function catchUp() {
    const page = await get("v1/doubt", { limit: PAGE }, signal);
    if (busy || signal.aborted) return;
    const [shown] = queue;
    const gone = new Set(decided.map(({ item }) => item.number));
    const there = page.items.filter((item) => !gone.has(item.number));
    const oldest = page.next === null ? -1 : page.items.at(-1).number;
    queue = [...there, ...queue.filter(({ number }) => number < oldest)];
    const at = queue.findIndex(({ number }) => number === shown?.number);
    if (at > 0) queue.unshift(...queue.splice(at, 1));
    total = Math.max(queue.length, page.total - skipped());
    if (queue[0]?.number !== shown?.number) return show();
    tellTotal();
  }

  function tellTotal() {
    left.textContent = queue.length ? `${plural(total, "image")} to decide` : "";
  }

  async function show() {
    while (!queue.length && cursor !== null) await more();
    const [item] = queue;
    tellTotal();
    if (!item) {
      const back = decided.length ? button("Undo the last decision", undo, { key: "u" }) : null;
      const why = "Images near the cut, or between two categories, come here.";
      return fill(stage, state("empty", "Nothing is in doubt", why, back));
    }
    for (const { number } of queue.slice(1, AHEAD)) new Image().src = `v1/sightings/${number}/thumbnail?size=640`;
    const name = item.image ?? `image ${item.number}`;
    const told = `${name} · score ${score(item.score)}, cut ${score(item.cut)} · now in ${within(item.name)}`;
    const candidates = item.candidates.slice(0, 3);
    fill(stage,
      h("figure", { class: "asked" },
        thumbnail(item.number, { size: 640, loading: "eager", alt: `The image in doubt: ${name}` }),
        h("figcaption", { class: "soft" }, told)),
      h("div", { class: "stack" }, h("h2", {}, "Which is it?"),
        h("ol", { class: "candidates" }, candidates.map((candidate, at) => offer(candidate, at, item))),
        h("div", { class: "acts" },
          button("New category", found, { key: "n", class: "button write" }), button("Skip", skip, { key: "s" }),
          button("Undo", undo, { key: "u", class: "button write", disabled: !decided.length }))));
    announce(`${name}: ${candidates.map((one, at) => `${at + 1} ${one.name}`).join(", ")}`);
  }

  function offer(candidate, at, item) {
    const pictures = h("span", { class: "three" });
    showSome(pictures, candidate.category, signal);
    const here = candidate.category === item.category;
    return h("li", {}, h("button", {
      type: "button", class: here ? "candidate here" : "candidate", disabled: status.rights === "read",
      "aria-keyshortcuts": String(at + 1), on: { click: () => choose(at) },
    }, pictures, h("span", { class: "words" }, h("b", { dir: "auto" }, candidate.name),
      h("span", { class: "soft" }, `score ${score(candidate.score)}${here ? " · where it is now" : ""}`)),
    h("kbd", { "aria-hidden": "true" }, at + 1)));
  }

  /** One decision at a time: a second key while the first is on its way does nothing. */
  async function decide(act) {
    if (busy || !queue.length) return;
    busy = true;
    try {
      const [item] = queue;
      const answer = await act(item);
      if (answer === null) return;
      decided.push({ item, event: answer.edits.at(-1) ?? null });
      queue.shift();
      total -= 1;
      await show();
    } finally {
      busy = false;
    }
  }

  const choose = (at) => decide((item) => {
    const candidate = item.candidates[at];
    return candidate ? actions.move([item.number], { id: candidate.category }) : null;
  });
  const found = () => decide((item) => actions.split(item.category, [item.number]));
  const skip = () => decide(() => ({ edits: [] }));

  /** The last image comes back; what was decided about it is undone, a skip has nothing to undo. */
  async function undo() {
    const last = decided.at(-1);
    if (busy || !last) return;
    busy = true;
    try {
      if (last.event !== null && !(await actions.undo(last.event))) return;
      decided.pop();
      queue.unshift(last.item);
      total += 1;
      await show();
    } finally {
      busy = false;
    }
  }

  const keys = { s: ["skip", skip] };
  if (status.rights === "write") {
    for (const at of [0, 1, 2]) keys[at + 1] = [`it is the ${["first", "second", "third"][at]}`, () => choose(at)];
    Object.assign(keys, { n: ["a new category of its own", found], u: ["undo the last decision", undo] });
  }
  bind("Doubt", keys, signal);
  const news = debounced(() => signal.aborted || catchUp().catch(complain), 600);
  listen({ edit: news, missed: news, sighting: news }, signal);
  await more();
  await show();
}
