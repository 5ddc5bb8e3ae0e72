/** The service's API: JSON in, JSON out, errors with the sentence that the service gave. */

/** What the service refused, or that it could not be reached (status 0). */
export class ApiError extends Error {
  constructor(status, message, body = null, wait = 1) {
    super(message);
    this.status = status;
    this.body = body;
    this.wait = wait; // seconds until it makes sense to try again
  }
}

let unlocking = null;
let askForToken = () => Promise.reject(new ApiError(401, "This service needs a token."));

/** Say who asks for a token when the service wants one: a function whose promise is kept once it was accepted. */
export function whenLocked(ask) {
  askForToken = ask;
}

/** Everything goes through here; a 401 asks for the token once, however many requests met it. */
async function request(method, path, options = {}) {
  try {
    return await send(method, path, options);
  } catch (error) {
    if (error.status !== 401 || path === "v1/login") throw error;
    unlocking ??= askForToken().finally(() => (unlocking = null));
    await unlocking;
    return send(method, path, options);
  }
}

async function send(method, path, { json, body, headers = {}, signal } = {}) {
  const sent = { "X-Newfound": "1", Accept: "application/json", ...headers };
  if (json !== undefined) sent["Content-Type"] = "application/json";
  const content = json === undefined ? body : JSON.stringify(json);
  let response;
  try {
    response = await fetch(path, { method, headers: sent, body: content, signal, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The service cannot be reached. Is it running?");
  }
  const text = await response.text();
  const answer = parsed(text);
  if (response.status === 202) return { ready: false, ...answer };
  if (response.ok) return answer;
  const wait = Number(response.headers.get("Retry-After")) || 1;
  throw new ApiError(response.status, sentence(answer, response), answer, wait);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The service's own words where it gave some. */
function sentence(answer, response) {
  const detail = answer?.detail ?? answer?.error;
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map((item) => item.msg).join("; ");
  return `The service answered ${response.status} ${response.statusText}.`;
}

/** A path with its query; what is null or empty is left out. */
export function path(base, query = {}) {
  const asked = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return asked.length ? `${base}?${new URLSearchParams(asked)}` : base;
}

export const get = (base, query, signal) => request("GET", path(base, query), { signal });
export const post = (base, json = {}) => request("POST", base, { json });
export const patch = (base, json) => request("PATCH", base, { json });

/** Observe files; the same key makes a second try safe. */
export function observe(files, key) {
  const form = new FormData();
  for (const file of files) form.append("images", file, file.name);
  return request("POST", "v1/observe", { body: form, headers: { "Idempotency-Key": key } });
}
