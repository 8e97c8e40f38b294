// A label's ballot: its drafts, and their noisy votes once these are released. `props.value`: see vote_card.py.
// Drafts arrive as text nodes. Rows are keyed by draft, so the released votes move them into their order, in which they
// also stand for who has them read aloud.
element.classList.add("ballot");
element.replaceChildren();
const head = make("div", "live-head", element);
const where = make("div", "live-where", head);
const count = make("div", "live-count", head);
const hint = make("p", "muted", element);
const legend = make("div", "live-legend", element);
const plot = make("div", "ballot-plot", element);
const noise = make("div", "ballot-noise", plot);
const band = make("div", "ballot-band", noise);
const zero = make("div", "ballot-zero", noise);
const axis = make("div", "live-axis", element);
const rows = new Map();

function row(key) {
  const line = make("div", "ballot-row", plot);
  const text = make("p", "ballot-text", line);
  const track = make("div", "bar-track", line);
  const bar = make("div", "bar", track);
  const value = make("span", "bar-value", line);
  const made = { line, text, bar, value };
  rows.set(key, made);
  return made;
}
function place(each, digits) {
  const made = rows.get(each.key) || row(each.key);
  plot.append(made.line);
  made.line.getBoundingClientRect(); // it moves from where it was
  made.line.style.setProperty("--rank", each.rank);
  made.line.classList.toggle("chosen", each.winner);
  made.text.textContent = made.text.title = each.text || "(empty)";
  made.bar.getBoundingClientRect(); // a new bar grows from nothing
  made.bar.style.left = 100 * each.from + "%";
  made.bar.style.width = 100 * (each.to - each.from) + "%";
  made.value.textContent = each.vote === null ? "" : each.vote.toFixed(digits);
}
function draw(view) {
  element.hidden = !view;
  if (!view) return;
  where.textContent = view.where + view.label + view.round;
  count.textContent = view.count;
  hint.textContent = view.hint;
  hint.hidden = !view.hint;
  axis.textContent = view.axis;
  const keys = new Set(view.rows.map((each) => each.key));
  for (const [key, made] of rows) if (!keys.has(key)) { made.line.remove(); rows.delete(key); }
  plot.style.setProperty("--count", view.rows.length);
  const digits = view.rows.every((each) => Number.isInteger(each.vote)) ? 0 : 1;
  for (const each of view.rows) place(each, digits);
  noise.hidden = legend.hidden = !view.band;
  legend.replaceChildren();
  if (!view.band) return;
  band.style.setProperty("--from", view.band[0]);
  band.style.setProperty("--to", view.band[1]);
  zero.style.setProperty("--at", view.zero);
  entry(legend, "key-noisy", "winner");
  entry(legend, "key-noisy key-pale", "other draft");
  entry(legend, "key-band", view.noise);
}
screen(draw);
