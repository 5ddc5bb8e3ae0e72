/** Images from anywhere on the page: dropped, chosen or pasted, sent in small batches in their order. */

import { observe } from "./api.js";
import { filesOf } from "./folders.js";
import { plural } from "./format.js";
import { toast } from "./toasts.js";

const BATCH = 16; // images a request: soon enough an answer, few enough requests
const BYTES = 24 * 2 ** 20; // a request, where the service takes as many
const WRAPPING = 2 ** 14; // bytes of a request that are not of its images, at most
let sending = 0; // how many lists are on their way

/** Take images that are dropped, pasted or chosen; `status` gives what the service has said of itself. */
export function acceptImages(status) {
  const veil = document.getElementById("drop");
  const take = (files) => accept(files, status() ?? {});
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0; // dragenter and dragleave come for every element that is crossed
  const show = (change) => {
    depth = Math.max(0, depth + change);
    veil.hidden = depth === 0;
  };
  addEventListener("dragenter", (event) => carriesFiles(event) && show(1));
  addEventListener("dragleave", (event) => carriesFiles(event) && show(-1));
  addEventListener("dragover", (event) => carriesFiles(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    show(-depth);
    filesOf(event.dataTransfer).then(take, () => toast("What was dropped could not be read.", { kind: "error" }));
  });
  addEventListener("paste", (event) => take([...(event.clipboardData?.files ?? [])]));
  addEventListener("beforeunload", (event) => sending && event.preventDefault()); // the rest would be lost
  const input = document.getElementById("files");
  input.addEventListener("change", () => {
    take([...input.files]);
    input.value = "";
  });
}

/** Send what the service will take, and say what it will not. */
function accept(files, { rights, limits = { body: Infinity } }) {
  if (rights === "read" || !files.length) return;
  const most = limits.body - WRAPPING;
  const bad = files.filter(({ size }) => size > most)
    .map(({ name }) => ({ error: `${name} is larger than ${Math.floor(limits.body / 2 ** 20)} MB.` }));
  const waiting = [...batches(files.filter(({ size }) => size <= most), Math.min(BYTES, most))];
  send(waiting, files.length, { seen: 0, founded: 0, repeated: 0, bad });
}

/** Send images and say what came of them; those that cannot be read do not stop the others. */
async function send(waiting, total, sum) {
  const told = toast(`Looking at ${plural(total, "image")}…`, { stays: true });
  sending += 1;
  try {
    while (waiting.length) {
      const { sightings, errors = [] } = await patiently(waiting[0]);
      waiting.shift();
      sum.seen += sightings.length;
      sum.founded += sightings.filter((sighting) => sighting.is_new && !sighting.repeated).length;
      sum.repeated += sightings.filter((sighting) => sighting.repeated).length;
      sum.bad.push(...errors);
      told.say(`Looked at ${sum.seen + sum.bad.length} of ${plural(total, "image")}…`);
    }
  } catch (error) {
    if (!("status" in error)) throw error;
    const rest = ["Send the rest", () => send(waiting, total, sum)];
    toast(`${error.message} ${plural(sum.seen, "image")} of ${total} went in.`, { kind: "error", actions: [rest] });
    return;
  } finally {
    sending -= 1;
    told.close();
  }
  conclude(sum);
}

function conclude({ seen, founded, repeated, bad }) {
  const found = founded ? `${plural(founded, "new category", "new categories")}` : "nothing new";
  const again = repeated ? `, ${repeated} seen before` : "";
  if (seen) toast(`${plural(seen, "image")}: ${found}${again}.`);
  if (bad.length) toast(`${plural(bad.length, "file")} not taken in. ${bad[0].error}`, { kind: "error" });
}

/** Files in requests, each with the key under which it can be sent again and is entered once. */
function* batches(files, most) {
  let batch = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length === BATCH || (batch.length && bytes + file.size > most)) {
      yield { files: batch, key: newKey() };
      [batch, bytes] = [[], 0];
    }
    batch.push(file);
    bytes += file.size;
  }
  if (batch.length) yield { files: batch, key: newKey() };
}

function newKey() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(16)).join("-");
}

/** One request, again under the same key while the service is busy. */
async function patiently({ files, key }) {
  for (;;) {
    try {
      return await observe(files, key);
    } catch (error) {
      const { sightings, errors } = error.body ?? {};
      if (error.status === 422 && errors) return { sightings: sightings ?? [], errors };
      if (error.status !== 429) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.wait));
    }
  }
}
