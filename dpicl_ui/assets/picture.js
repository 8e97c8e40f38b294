// What a mechanism does, in a few lines on one axis. `props.value`: see charts.py. Words arrive as text nodes.
element.classList.add("picture");
element.setAttribute("role", "group");
element.replaceChildren();
const title = make("h4", "", element);
const legend = make("div", "live-legend", element);
const lines = make("div", "picture-lines", element);
const axis = make("div", "live-axis", element);

function put(name, track, at, width) {
  const made = make("i", name, track);
  made.style.left = 100 * at + "%";
  if (width !== undefined) made.style.width = 100 * width + "%";
}
function line(each, zero) {
  make(each.token ? "code" : "span", "picture-words" + (each.token ? " bar-label" : ""), lines).textContent = each.words;
  const track = make("div", "picture-track" + (each.pale ? " pale" : ""), lines);
  put("picture-zero", track, zero);
  for (const [from, to] of each.spans) put("picture-span", track, from, to - from);
  for (const at of each.marks) put("bar-public", track, at);
  if (each.clean) {
    put("picture-before", track, each.clean[0]);
    put("bar-clean", track, each.clean[1]);
  }
  make("span", "picture-note", lines).textContent = each.note;
}
function draw(view) {
  element.hidden = !view;
  if (!view) return;
  title.textContent = view.title;
  element.setAttribute("aria-label", view.title);
  legend.replaceChildren();
  legend.hidden = !view.legend.length;
  for (const [kind, words] of view.legend) entry(legend, kind, words);
  lines.replaceChildren();
  for (const each of view.lines) line(each, view.zero);
  axis.textContent = view.axis;
}
screen(draw);
