/** What happens while one looks: the service's event stream, handed on as DOM events. */

const TYPES = ["sighting", "category", "edit", "position"];
const AGAIN = 3000; // milliseconds until a stream that was refused is asked for again

/** Dispatches "sighting", "category", "edit" and "position" with the JSON as detail, and "state" with a word. */
export const live = new EventTarget();

let source = null;

/** Open the stream; after a break the browser resumes it where it was. */
export function follow() {
  source?.close();
  source = new EventSource("v1/events");
  for (const type of TYPES) source.addEventListener(type, (event) => tell(type, JSON.parse(event.data)));
  source.addEventListener("open", () => tell("state", "live"));
  source.addEventListener("error", () => {
    tell("state", "waiting");
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN);
  });
}

function tell(type, detail) {
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
