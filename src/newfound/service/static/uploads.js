/** Images from anywhere on the page: dropped, chosen or pasted, sent in small batches in their order. */

import { observe } from "./api.js";
import { plural } from "./format.js";
import { toast } from "./toasts.js";

const BATCH = 16; // images a request: soon enough an answer, few enough requests
const BYTES = 24 * 2 ** 20; // a request; the service refuses more than 64 MB

/** Take images that are dropped, pasted or chosen. */
export function acceptImages() {
  const veil = document.getElementById("drop");
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
    send([...event.dataTransfer.files]);
  });
  addEventListener("paste", (event) => send([...(event.clipboardData?.files ?? [])]));
  const input = document.getElementById("files");
  input.addEventListener("change", () => {
    send([...input.files]);
    input.value = "";
  });
}

/** Send images and say what came of them; those that cannot be read do not stop the others. */
async function send(files) {
  if (!files.length || document.body.dataset.rights === "read") return;
  const told = toast(`Looking at ${plural(files.length, "image")}…`, { stays: true });
  const sum = { seen: 0, founded: 0, repeated: 0, bad: [] };
  try {
    for (const batch of batches(files)) {
      const { sightings, errors = [] } = await patiently(batch);
      sum.seen += sightings.length;
      sum.founded += sightings.filter((sighting) => sighting.is_new && !sighting.repeated).length;
      sum.repeated += sightings.filter((sighting) => sighting.repeated).length;
      sum.bad.push(...errors);
      told.say(`Looked at ${sum.seen + sum.bad.length} of ${plural(files.length, "image")}…`);
    }
    told.close();
  } catch (error) {
    told.close();
    if (!("status" in error)) throw error;
    toast(`${error.message} ${plural(sum.seen, "image")} of ${files.length} went in.`, { kind: "error" });
    return;
  }
  conclude(sum);
}

function conclude({ seen, founded, repeated, bad }) {
  const found = founded ? `${plural(founded, "new category", "new categories")}` : "nothing new";
  const again = repeated ? `, ${repeated} seen before` : "";
  if (seen) toast(`${plural(seen, "image")}: ${found}${again}.`);
  if (bad.length) toast(`${plural(bad.length, "file")} not taken in. ${bad[0].error}`, { kind: "error" });
}

function* batches(files) {
  let batch = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length === BATCH || (batch.length && bytes + file.size > BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(file);
    bytes += file.size;
  }
  yield batch;
}

/** One request, again under the same key while the service is busy. */
async function patiently(batch) {
  const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(16)).join("-");
  for (;;) {
    try {
      return await observe(batch, key);
    } catch (error) {
      const { sightings, errors } = error.body ?? {};
      if (error.status === 422 && errors) return { sightings: sightings ?? [], errors };
      if (error.status !== 429) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.wait));
    }
  }
}
