/** What was dropped, as files: folders are opened, and what is in them and no image is left alone. */

/**
 * The files of a drop; to be called while the event is being handled, as the browser forgets them afterwards.
 *
 * @param {DataTransfer} carried
 * @returns {Promise<File[]>} in the order of their names within a folder.
 */
export async function filesOf(carried) {
  const files = [...carried.files];
  const entries = [...carried.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return files;
  return (await Promise.all(entries.map((entry) => (entry.isDirectory ? imagesIn(entry) : fileOf(entry))))).flat();
}

async function imagesIn(folder) {
  const entries = await allOf(folder.createReader());
  entries.sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
  const found = await Promise.all(entries.map((entry) => (entry.isDirectory ? imagesIn(entry) : fileOf(entry))));
  return found.flat().filter(({ type }) => type.startsWith("image/"));
}

/** A reader gives its entries in parts, the last of which is empty. */
async function allOf(reader) {
  const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
  return some.length ? [...some, ...(await allOf(reader))] : [];
}

function fileOf(entry) {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}
