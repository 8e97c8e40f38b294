// The live screen of a run: text so far and the candidates with the values that decided. `props.value`: see charts.py.
// Everything from the model arrives as text nodes. Rows are made once and stand in the order in which they are read; what
// has not changed is not written, so that an update is painted soon even while the model keeps all cores busy.
element.classList.add("live");
element.replaceChildren();
const head = make("div", "live-head", element);
const where = make("div", "live-where", head);
const count = make("div", "live-count", head);
const meter = make("div", "meter", element);
const filled = make("div", "meter-fill", meter);
const sentence = make("p", "muted live-sentence", element);
const text = make("p", "live-text", element);
const settled = make("span", "", text);
const fresh = make("mark", "", text);
const legend = make("div", "live-legend", element);
const plot = make("div", "live-plot", element);
const band = make("div", "live-band", plot);
const zero = make("div", "live-zero", plot);
const axis = make("div", "live-axis", element);
const others = make("div", "live-others", element);
const rows = [];
const say = (node, words) => { if (node.textContent !== words) node.textContent = words; };

function row() {
  const line = make("div", "bar-row", plot);
  const label = make("code", "bar-label", line);
  const track = make("div", "bar-track", line);
  const bar = make("div", "bar", track);
  const open = make("div", "bar-public", track);
  const decided = make("div", "bar-decided", track);
  const clean = make("div", "bar-clean", track);
  const value = make("span", "bar-value", line);
  const made = { line, label, bar, open, decided, clean, value };
  rows.push(made);
  return made;
}
function place(each, number, low, high, chart) {
  const at = (value) => 100 * (value - low) / (high - low);
  const made = rows[number] || row();
  made.line.classList.toggle("chosen", each.chosen);
  say(made.label, each.token);
  made.label.title = each.token;
  const from = Math.min(0, each.value), to = Math.max(0, each.value);
  made.bar.style.left = at(from) + "%";
  made.bar.style.width = at(to) - at(from) + "%";
  made.bar.classList.toggle("outline", !chart.noisy);
  made.open.hidden = !chart.noisy;
  made.open.style.left = at(each.public) + "%";
  made.decided.hidden = each.decided === null;
  if (each.decided !== null) made.decided.style.left = at(each.decided) + "%";
  made.clean.hidden = each.clean === null;
  if (each.clean !== null) made.clean.style.left = at(each.clean) + "%";
  const said = each.decided === null ? each.value : each.decided;
  say(made.value, said.toFixed(Math.abs(said) < 10 ? 1 : 0));
}
function chartOf(chart) {
  plot.hidden = axis.hidden = legend.hidden = !chart;
  if (!chart) return;
  const [low, high] = chart.domain;
  chart.bars.forEach((each, number) => place(each, number, low, high, chart));
  rows.forEach((made, number) => { made.line.hidden = number >= chart.bars.length; });
  const at = (value) => (value - low) / (high - low);
  zero.style.setProperty("--at", at(0));
  band.hidden = !chart.noise;
  band.style.setProperty("--from", at(-(chart.noise || 0)));
  band.style.setProperty("--to", at(chart.noise || 0));
  const { noisy, free, read, noise, clip, clean } = chart;
  const signs = JSON.stringify({ noisy, free, read, noise, clip, clean });
  if (legend.dataset.signs !== signs) legended(chart);
  legend.dataset.signs = signs;
  say(axis, `in rows, out of about ${chart.rows}${chart.hidden ? `; ${chart.hidden} more candidates are not shown` : ""}`);
}
function legended(chart) {
  legend.replaceChildren();
  if (chart.noisy) {
    entry(legend, "key-noisy", chart.read ? "noisy value (releasable)" : "noisy value that decided (releasable)");
    entry(legend, "key-public", "what the model expects without the data");
    if (chart.read) entry(legend, "key-decided", "what decided: the noisy value, with what the model expects weighed in");
    if (chart.noise) entry(legend, "key-band", `noise: ±${chart.noise} (one standard deviation)`);
  } else if (chart.free)
    entry(legend, "key-outline", "what the model expects without the data: this token came from it, free");
  else entry(legend, "key-outline", "what the model expects without the data; this mechanism releases the token alone");
  if (chart.clip) entry(legend, "", `a row's logits are clipped at ${Number(chart.clip.toPrecision(3))}`);
  if (chart.clean) entry(legend, "key-clean", "average without noise: for your eyes only");
}
function beside(drafts) {
  others.replaceChildren();
  if (drafts.length) make("div", "live-legend", others).textContent = "Being written beside it";
  for (const each of drafts) {
    const line = make("p", "live-other", others);
    make("b", "", line).textContent = each.label + each.which;
    line.append(" " + each.text);
  }
}
// In a replay the whole text is there, token by token: those behind the one that is shown are pale.
function token(each, now) {
  if (each.place === null) return document.createTextNode(each.text);
  const made = document.createElement("span"); // a button would break the lines of the text
  made.setAttribute("role", "button");
  made.tabIndex = -1; // the replay's slider goes through them with the arrow keys
  made.className = "live-token" + (each.place === now ? " now" : each.place > now ? " later" : "") + (each.free ? " free" : "");
  if (each.place === now) made.setAttribute("aria-current", "step");
  made.textContent = each.text;
  made.title = each.free ? `${each.token}: free, public text alone decided` : each.token;
  made.setAttribute("aria-label", `Show the step of ${made.title}`);
  made.addEventListener("click", () =>
    element.dispatchEvent(new CustomEvent("replay-go", { detail: each.place, bubbles: true })));
  return made;
}
function draw(view) {
  element.hidden = !view;
  if (!view) return;
  element.dataset.phase = view.phase;
  say(where, view.where);
  say(count, view.count);
  say(sentence, view.sentence);
  filled.style.width = 100 * view.progress + "%";
  settled.textContent = view.text;
  fresh.textContent = view.fresh;
  const empty = !view.text && !view.fresh && !view.tokens;
  text.classList.toggle("empty", empty);
  if (view.tokens) {
    settled.replaceChildren(...view.tokens.map((each) => token(each, view.at)));
    fresh.textContent = "";
  }
  if (empty) settled.textContent = view.hint;
  chartOf(view.chart);
  beside(view.others);
}
screen(draw);
