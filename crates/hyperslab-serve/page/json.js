// JSON with integers of any size: those that a double cannot hold exactly become BigInt.

/** Marks integers while JSON is parsed or written. No text of a file starts with it, because it is new for each page. */
const MARK = `${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;

/** A text, or a number with all its digits. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;

export function parse(text) {
  // Integers of up to 15 digits are exact.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKEN, (token) => (/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK}${token}"` : token));
  return JSON.parse(marked, (_, value) => (typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value));
}

/** A value as text: texts unchanged, others as JSON. */
export function shown(value) {
  if (typeof value === "string") return value;
  const text = JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${MARK}${part}` : part));
  return text.replaceAll(new RegExp(`"${MARK}(-?\\d+)"`, "g"), "$1");
}
