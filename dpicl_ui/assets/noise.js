// How noisy a run would be: bars of what the model expects without any row, with noise that is drawn here, once, and
// grows and shrinks with the slider of epsilon. `props.value`: see `picture` in privacy/cards.py, or null.
element.classList.add("noise");
element.setAttribute("role", "group");
element.setAttribute("aria-label", "How noisy it would be");
const uniform = () => 1 - Math.random(); // never 0
const draws = {
  gaussian: () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * Math.random()),
  laplace: () => Math.log(uniform() / uniform()) / Math.SQRT2,
};
const BEYOND = 0.6; // of the largest bar: how far the axis reaches to either side of nothing and of that bar
const MOST = 20;
// The deviation at an epsilon, between those that are known: a straight line of logarithms.
function deviation(known, epsilon) {
  const [[least], [most]] = [known[0], known[known.length - 1]];
  const at = Math.min(most, Math.max(least, epsilon));
  const behind = Math.max(1, known.findIndex(([each]) => each >= at));
  const [from, to] = [known[behind - 1], known[behind] || known[behind - 1]];
  if (to[0] === from[0]) return to[1];
  const share = Math.log(at / from[0]) / Math.log(to[0] / from[0]);
  return from[1] * (to[1] / from[1]) ** share;
}
const drawn = Object.fromEntries(Object.keys(draws).map((shape) => [shape, Array.from({ length: MOST }, draws[shape])]));
let redraw = () => {};

function bars(group) {
  make("h4", "", element, group.title);
  const list = make("div", "picture-lines", element);
  const largest = Math.max(...group.bars.map((each) => each.value));
  const place = (value) => Math.min(1, Math.max(0, (value / largest + BEYOND) / (1 + 2 * BEYOND)));
  const noise = drawn[group.shape];
  const lines = group.bars.map((each) => {
    make("span", "picture-words bar-label", list, each.name);
    const track = make("div", "picture-track", list);
    make("i", "picture-zero", track).style.left = 100 * place(0) + "%";
    const span = make("i", "picture-span", track);
    make("i", "bar-public", track).style.left = 100 * place(each.value) + "%";
    return { each, span, note: make("span", "picture-note", list) };
  });
  const words = make("p", "live-axis", element);
  return (epsilon) => {
    const size = deviation(group.noise, epsilon);
    lines.forEach(({ each, span, note }, i) => {
      const value = each.value + size * noise[i];
      const [from, to] = [place(Math.min(0, value)), place(Math.max(0, value))];
      span.style.left = 100 * from + "%";
      span.style.width = 100 * (to - from) + "%";
      span.classList.toggle("more", value / largest > 1 + BEYOND);
      span.classList.toggle("less", value / largest < -BEYOND);
      note.textContent = value.toFixed(Math.abs(value) < 10 ? 1 : 0);
    });
    words.textContent = `Out of about ${group.rows}, with noise of ±${Number(size.toPrecision(2))}`;
  };
}
function draw(view) {
  element.replaceChildren();
  redraw = () => {};
  if (!view) return make("p", "muted", element, "The picture comes when the model is loaded and the noise is calibrated.");
  const legend = make("div", "live-legend", element);
  entry(legend, "key-noisy", "with noise: what would be released");
  entry(legend, "key-public", "what the model expects");
  const groups = view.groups.map(bars);
  redraw = (epsilon) => groups.forEach((each) => each(epsilon));
  redraw(view.epsilon);
}
document.addEventListener("epsilon", (event) => redraw(event.detail));
screen(draw);
