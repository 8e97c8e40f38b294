// Looks back at a run: moves the screens of step 3 from place to place, here and without the server.
// `props.value` is null, or see replay.py. Each screen draws what a "replay" event brings it, as text nodes.
const SCREENS = ["run-stages", "openings", "words", "live", "votes", "own-score"];
const DELAY = 1000 / 1.5; // milliseconds between two places at speed 1; at speed 10 there are 15 a second
element.classList.add("replay");
element.setAttribute("role", "group");
element.setAttribute("aria-label", "Replay");
element.replaceChildren();
function control(sign, name, press) {
  const made = make("button", "replay-button", element);
  made.type = "button";
  made.textContent = sign;
  made.setAttribute("aria-label", name);
  made.title = name;
  made.addEventListener("click", press);
  return made;
}
const back = control("‹", "One step back", () => go(at - 1));
const play = control("▶", "Play", () => (timer === null ? start() : stop()));
const forth = control("›", "One step forward", () => go(at + 1));
const range = make("input", "replay-range", element);
range.type = "range";
range.min = "1";
range.setAttribute("aria-label", "Step of the run");
range.addEventListener("input", () => go(Number(range.value) - 1));
const speed = make("select", "replay-speed", element);
speed.setAttribute("aria-label", "Speed");
for (const each of [0.5, 1, 2, 4, 10]) speed.add(new Option(`${each}×`, each, each === 1, each === 1));
speed.addEventListener("change", () => { if (timer !== null) start(at, upto); });
const where = make("p", "replay-where muted", element);
where.setAttribute("role", "status");
const chapters = make("div", "replay-chapters", element);
chapters.setAttribute("role", "group");
chapters.setAttribute("aria-label", "Play a stage again");
const frames = () => (props.value ? props.value.frames : []);
let at = 0, upto = 0, timer = null;

function stop() {
  clearInterval(timer);
  timer = null;
  play.textContent = "▶";
  play.setAttribute("aria-label", "Play");
  play.title = "Play";
  where.setAttribute("aria-live", "polite");
}
function start(first = at === frames().length - 1 ? 0 : at, last = frames().length - 1) {
  stop();
  upto = last;
  if (first !== at) show(first);
  timer = setInterval(() => (at < upto ? show(at + 1) : stop()), DELAY / Number(speed.value));
  play.textContent = "❚❚";
  play.setAttribute("aria-label", "Pause");
  play.title = "Pause";
  where.setAttribute("aria-live", "off"); // a screen reader would not keep up
}
function go(place) {
  stop();
  show(place);
}
function words(place) {
  const { name } = frames()[place];
  const more = props.value.cut && place === frames().length - 1 ? "; the saved file has the rest" : "";
  return `${name} (${place + 1} of ${frames().length}${more})`;
}
function controls() {
  const last = frames().length - 1;
  range.max = String(last + 1);
  range.value = String(at + 1);
  range.setAttribute("aria-valuetext", words(at));
  where.textContent = words(at);
  back.disabled = at === 0;
  forth.disabled = at === last;
}
// Without a value in `detail` a screen draws what the server sent last, else the place that it is given until then.
function put(screen, detail) {
  const on = document.querySelector(`#${screen} .html-container > *`);
  if (on) on.dispatchEvent(new CustomEvent("replay", { detail }));
}
function show(place) {
  at = Math.max(0, Math.min(frames().length - 1, place));
  const { parts, texts } = props.value;
  for (const [screen, part] of Object.entries(frames()[at].at)) {
    let value = parts[screen][part];
    if (value && value.tokens !== undefined) value = { ...value, tokens: texts[value.tokens], at };
    put(screen, { value });
  }
  controls();
}
// One button a stage plays its part of the run, and stops where the next one begins.
function chapter(stage) {
  const places = frames().flatMap((each, place) => (each.stage === stage ? [place] : []));
  const made = make("button", "replay-chapter", chapters, `▶ ${stage}`);
  made.type = "button";
  made.setAttribute("aria-label", `Play ${stage} again`);
  made.addEventListener("click", () => start(places[0], places[places.length - 1]));
}
function draw() {
  stop();
  element.hidden = !props.value;
  at = Math.max(0, frames().length - 1);
  for (const screen of SCREENS) put(screen, {}); // another run: nothing of the one before stays
  chapters.replaceChildren();
  if (!props.value) return;
  const stages = [...new Set(frames().map((each) => each.stage))].filter(Boolean);
  if (stages.length > 1) stages.forEach(chapter);
  controls();
  const drawn = props.value; // the screens get how the run ended at the same time: behind that, its tokens can be clicked
  setTimeout(() => { if (props.value === drawn && timer === null && at === frames().length - 1) show(at); }, 100);
}
// A token of the text was clicked.
document.addEventListener("replay-go", (event) => { if (props.value) go(event.detail); });
watch("value", draw);
draw();
