/** What a mouse and fingers mean on the map: one finger draws a loop or taps, two move and zoom; so does the hand. */

const STILL = 8; // pixels that a tap may wander

/**
 * Tell gestures on a canvas apart.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {Object} heard the functions that hear of them: `hover(place)`, with null when the mouse has left; `tap(place,
 *   byTouch)`; `draw(path)` while a loop is drawn and with [] when it ends, `loop(path)` when it is closed;
 *   `move(right, down)`; `zoom(factor, place)`; and `moves()`, which says whether one pointer moves the map.
 */
export function hearGestures(canvas, heard) {
  const down = new Map(); // where each pointer is that is pressed
  let path = []; // of the only pointer so far
  let moving = false;
  const place = (event) => [event.offsetX, event.offsetY];

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, place(event));
    path = down.size === 1 ? [place(event)] : [];
    moving = down.size > 1 || event.shiftKey || event.button === 1 || heard.moves();
    heard.draw([]);
  });
  canvas.addEventListener("pointermove", (event) => {
    const was = down.get(event.pointerId);
    if (!was) return event.pointerType === "mouse" && heard.hover(place(event));
    if (down.size === 1) path.push(place(event));
    if (moving) follow(event.pointerId, was, place(event));
    else heard.draw(path);
    down.set(event.pointerId, place(event));
  });
  canvas.addEventListener("pointerup", (event) => {
    const ended = path;
    end(event);
    if (down.size || !ended.length) return;
    if (reach(ended) < STILL) heard.tap(place(event), event.pointerType !== "mouse");
    else if (!moving) heard.loop(ended);
  });
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && heard.hover(null));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    heard.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, place(event));
  }, { passive: false });

  function end(event) {
    down.delete(event.pointerId);
    path = [];
    heard.draw([]);
  }

  /** One pointer takes the map along; of two, each does half of it, and the distance between them is the zoom. */
  function follow(pointer, was, now) {
    const share = 1 / down.size;
    heard.move((now[0] - was[0]) * share, (now[1] - was[1]) * share);
    const other = [...down].find(([id]) => id !== pointer)?.[1];
    if (!other) return;
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    heard.zoom(apart(now, other) / Math.max(1, apart(was, other)), middle);
  }
}

const apart = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]);

/** How far a path goes from where it began. */
function reach(path) {
  return Math.max(...path.map((place) => apart(place, path[0])));
}
