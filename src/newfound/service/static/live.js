/** What happens while one looks: the service's event stream, handed on as DOM events. */

const TYPES = ["sighting", "category", "gone", "edit", "position"];
const AGAIN = 3000; // milliseconds until a stream that was refused is asked for again
const UNSEEN = 20000; // milliseconds after which a tab in the background lets go: a browser has six connections for all

/**
 * Dispatches "sighting", "category", "gone" (a category lives on under another id), "edit" and "position" with the JSON
 * as detail, "state" with a word, and "missed" when there was more than the stream tells of: after a break that the
 * browser could not make up for.
 */
export const live = new EventTarget();

let source = null;
let heard = null; // the position after the last message
let resting = 0;

/** Open the stream; after a break the browser resumes it where it was. */
export function follow() {
  source?.close();
  const mine = (source = new EventSource("v1/events"));
  let opened = false;
  for (const type of TYPES) {
    mine.addEventListener(type, (event) => {
      const missed = opened && heard !== null && event.lastEventId !== heard; // the first message says from where on
      opened = false;
      heard = event.lastEventId;
      tell(type, JSON.parse(event.data));
      if (missed) tell("missed");
    });
  }
  mine.addEventListener("open", () => {
    opened = true;
    tell("state", "live");
  });
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    tell("state", "waiting");
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === source && follow(), AGAIN);
  });
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(resting);
  if (document.hidden) resting = setTimeout(rest, UNSEEN);
  else if (source?.readyState === EventSource.CLOSED) follow();
});

function rest() {
  source?.close();
  tell("state", "waiting");
}

function tell(type, detail = null) {
  live.dispatchEvent(new CustomEvent(type, { detail }));
}

/**
 * Listen until a signal says stop.
 *
 * @param {Object<string, function(*)>} listeners by type of event; each gets the detail.
 */
export function listen(listeners, signal) {
  for (const [type, listener] of Object.entries(listeners)) {
    live.addEventListener(type, (event) => listener(event.detail), { signal });
  }
}

/** Collect what comes in a burst and hand it on at once, by id, the last word on each. */
export function gathered(take, milliseconds = 250) {
  const waiting = new Map();
  let timer = 0;
  return (item) => {
    waiting.set(item.id ?? item.number, item);
    timer ||= setTimeout(() => {
      timer = 0;
      const items = [...waiting.values()];
      waiting.clear();
      take(items);
    }, milliseconds);
  };
}
