/** Numbers and times as people write them. */

const WHOLE = new Intl.NumberFormat("en");
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const MOMENT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [7 * 86400, 86400, "d"]];

/** 1234 is "1,234". */
export const count = (number) => WHOLE.format(number);

/** "1 image", "2 images"; `many` is for words that are not regular. */
export function plural(number, word, many = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : many}`;
}

/** "5 min", and a date where that says more; `ago` and `span` make phrases of it. */
function past(seconds) {
  const since = Math.max(0, Date.now() / 1000 - seconds);
  const step = STEPS.find(([limit]) => since < limit);
  if (step) return [`${Math.floor(since / step[1])} ${step[2]}`, " ago"];
  const thisYear = new Date(seconds * 1000).getFullYear() === new Date().getFullYear();
  return [(thisYear ? DAY : DATE).format(seconds * 1000), ""];
}

/** "5 min ago", "just now", "3 Nov". */
export function ago(seconds) {
  return Date.now() / 1000 - seconds < 5 ? "just now" : past(seconds).join("");
}

/** "5 h to 2 min ago", "5 h ago to now"; where both are the same, "2 min ago". */
export function span(first, last) {
  const [from, to] = [past(first)[0], ago(last)];
  if (past(last)[0] === from) return to;
  return to === "just now" ? `${past(first).join("")} to now` : `${from} to ${to}`;
}

/** The whole date and time, for titles. */
export const moment = (seconds) => MOMENT.format(seconds * 1000);

/** 0.923 is "92 %". */
export const percent = (share) => `${Math.round(100 * share)} %`;

/** A score with as many digits as people can use. */
export function score(value) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1).replace("-", "−");
}

/** A name inside a sentence: one that is written from right to left does not turn the words around it. */
export const within = (name) => `\u2068${name}\u2069`;
