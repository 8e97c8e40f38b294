// Shows the page in German: what stands in a text node or an attribute is looked up in a catalogue and written over.
// `props.value` is that catalogue (see languages/), or null until somebody wants it: a browser that prefers German asks by
// itself, others by the button, and what the button said last is all that the browser remembers of the app. Nothing is
// translated on the server, and what people brought is left alone (`notranslate`, code, lists of choices, fields).
const ATTRIBUTES = ["aria-label", "aria-valuetext", "title", "data-title", "placeholder", "alt"]; // data-title: Plotly's
const KEPT = "code, pre, script, style, textarea, option:not([value]), [contenteditable], [role=listbox], .notranslate, "
  + "#confusion .ytick";
const HEADS = "[data-testid=block-info], [data-testid=block-label]"; // the app's own words on a component of other people's
const NUMBER = "((?:[-−+±]?\\d[\\d.,:]*(?:e[-+]?\\d+)?)|∞|inf)";
const CHOSEN = "dpicl-language"; // in the browser's own storage
const LONGEST = 2000; // characters; what is longer is no sentence of the app, and could keep the patterns busy
const MOST_TOGETHER = 8; // sentences of one entry
const MOST_REMEMBERED = 4000;
const PATIENCE = 10000; // milliseconds after which the catalogue may be asked for once more
const HOLDER = /(\{[ntx]\d*\})/; // {n} is a number, {t} words that are translated themselves, {x} anything, left as it is
let german = false;
let asked = false;
let exact = new Map();
let patterns = [];
const remembered = new Map();
const written = new WeakMap(); // node -> {name of the attribute, or "": {english, german}}

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
function pattern(english, translation) {
  const parts = english.split(HOLDER), names = parts.filter((_, i) => i % 2), fixed = parts.filter((_, i) => i % 2 === 0);
  const source = parts.map((part, i) => (i % 2 === 0 ? literal(part) : part[1] === "n" ? NUMBER : "(.+?)")).join("");
  const expression = new RegExp(`^${source}$`, "su");
  return { expression, start: fixed[0], end: fixed.at(-1), names, translation, letters: fixed.join("").length };
}
function learn(catalogue) {
  const entries = Object.entries(catalogue);
  exact = new Map(entries.filter(([english]) => !HOLDER.test(english)));
  patterns = entries.filter(([english]) => !exact.has(english)).map(([english, words]) => pattern(english, words));
  patterns.sort((one, other) => other.letters - one.letters); // what says most about a sentence fits it best
}
// A German reads 7,872 as less than eight: a narrow blank divides thousands. The decimal point stays, as in the fields.
const THOUSANDS = /^[-−+±]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/;
const grouped = (number) => (THOUSANDS.test(number) ? number.replaceAll(",", "\u202f") : number);
const VALUES = { n: grouped, t: translated, x: (words) => words };
function phrase(words) {
  if (exact.has(words)) return exact.get(words);
  for (const { expression, start, end, names, translation } of patterns) {
    const found = words.startsWith(start) && words.endsWith(end) && expression.exec(words);
    if (!found) continue;
    const values = new Map(names.map((name, i) => [name, VALUES[name[1]](found[i + 1])]));
    return translation.split(HOLDER).map((part) => values.get(part) ?? part).join("");
  }
  return null;
}
// Several sentences: as many together as have an entry, then those behind them.
function sentences(words) {
  const parts = words.split(/(?<=[.!?:;…]) /), made = [];
  for (let from = 0, to; from < parts.length; from = to) {
    let known = null;
    for (to = Math.min(parts.length, from + MOST_TOGETHER); to > from; to--)
      if ((known = phrase(parts.slice(from, to).join(" "))) !== null) break;
    if (known === null) to = from + 1;
    made.push(known ?? parts[from]);
  }
  return made.join(" ");
}
function translated(text) {
  const words = text.trim(), at = text.indexOf(words);
  if (words.length > LONGEST) return text;
  if (remembered.has(text)) return remembered.get(text);
  const said = /[A-Za-z]/.test(words) ? sentences(words) : grouped(words);
  const made = text.slice(0, at) + said + text.slice(at + words.length);
  if (remembered.size > MOST_REMEMBERED) remembered.clear();
  remembered.set(text, made);
  return made;
}
function kept(parent) {
  const keeper = parent?.closest(KEPT), head = parent?.closest(HEADS);
  return Boolean(keeper) && !(head && keeper.matches(".notranslate") && keeper.contains(head));
}
function write(node, name, now, put) {
  const before = written.get(node)?.[name];
  if (!german) {
    if (before && before.german === now) put(before.english);
    return;
  }
  if (!now || (before && before.german === now)) return;
  const made = translated(now);
  if (made === now) return;
  written.set(node, { ...written.get(node), [name]: { english: now, german: made } });
  put(made);
}
function attributes(node) {
  if (german && kept(node.localName === "textarea" ? node.parentElement : node)) return; // its placeholder is the app's
  for (const name of ATTRIBUTES)
    if (node.hasAttribute(name)) write(node, name, node.getAttribute(name), (words) => node.setAttribute(name, words));
}
function say(node) {
  if (!node.isConnected) return; // nobody knows where it will stand
  if (node.nodeType === Node.TEXT_NODE && !(german && kept(node.parentElement)))
    write(node, "", node.data, (words) => { node.data = words; });
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  attributes(node);
  node.childNodes.forEach(say);
}
const observer = new MutationObserver((changes) => {
  for (const { type, target, addedNodes } of changes)
    if (type === "childList") addedNodes.forEach(say);
    else if (type === "attributes") attributes(target);
    else say(target);
});
const watched = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES };

const button = document.createElement("button");
button.type = "button";
button.className = "notranslate";
element.replaceChildren(button);
function show() {
  document.documentElement.lang = german ? "de" : "en";
  button.textContent = german ? "English" : "Deutsch";
  button.lang = german ? "en" : "de";
  if (german) observer.observe(document.body, watched);
  else observer.disconnect();
  say(document.body);
}
function change() {
  if (!patterns.length) return ask();
  german = !german;
  remembered.clear();
  show();
}
function ask() {
  if (asked) return;
  asked = true;
  setTimeout(() => { asked = false; }, PATIENCE);
  trigger("expand"); // the catalogue comes, and the page turns German
}
watch("value", () => {
  if (!props.value || patterns.length) return;
  learn(props.value);
  change();
});
function remember(language) {
  try { localStorage.setItem(CHOSEN, language); } catch { /* a frame of another site may have no storage */ }
}
function chosen() {
  try { return localStorage.getItem(CHOSEN); } catch { return null; }
}
button.addEventListener("click", () => { remember(german ? "en" : "de"); change(); });
show();
if (/^de\b/i.test(chosen() ?? navigator.language)) change();
