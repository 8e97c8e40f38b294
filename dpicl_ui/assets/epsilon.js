// A logarithmic slider from 0.1 to 10 with a number beside it. `props.value` is epsilon; fires `release` when settled,
// and an "epsilon" event on the page while it moves.
const LOW = -1, HIGH = 1, STEPS = 200;
const range = element.querySelector("input[type=range]");
const number = element.querySelector("input[type=number]");
const word = element.querySelector(".epsilon-word");
const round = (value) => Number(value.toPrecision(2));
const fromRange = () => round(10 ** (LOW + (HIGH - LOW) * Number(range.value) / STEPS));
function describe(value) {
  element.dispatchEvent(new CustomEvent("epsilon", { detail: value, bubbles: true }));
  word.textContent = value >= 5 ? "weak: for tests only" : value >= 2 ? "moderate" : value >= 0.5 ? "strong" : "very strong";
  word.classList.toggle("weak", value >= 5);
}
function show(value) {
  range.value = String(Math.round(STEPS * (Math.log10(value) - LOW) / (HIGH - LOW)));
  number.value = String(value);
  range.setAttribute("aria-valuetext", `epsilon ${value}`);
  describe(value);
}
function settle(value) {
  const bounded = Math.min(10, Math.max(0.1, Number.isFinite(value) && value > 0 ? value : 1));
  show(bounded);
  props.value = bounded;
  trigger("release");
}
range.addEventListener("input", () => { number.value = String(fromRange()); describe(fromRange()); });
range.addEventListener("change", () => settle(fromRange()));
number.addEventListener("change", () => settle(Number(number.value)));
watch("value", () => show(Number(props.value)));
show(Number(props.value));
