// The five steps and the budget beside them: moves between panels in the browser alone, and says why one is closed.
// `props.value` is {go: [ticket, step], steps: [{title, note, done, why, sign, opened, left}]}; a new ticket moves to its
// step. `opened` and `left` are what the bar fires when a place is come to, or left. A place beside the steps has a sign:
// a click opens it at the side of the present step, and a second click, the escape key or another step closes it.
let ticket = null;
let current = 1;
let beside = 0;
const bar = document.createElement("nav");
bar.setAttribute("aria-label", "Steps");
element.replaceChildren(bar);
function panels() {
  const { steps } = props.value;
  steps.forEach((step, i) => {
    const panel = document.getElementById("step-" + (i + 1));
    if (!panel) return;
    panel.classList.toggle("current", i + 1 === current || i + 1 === beside);
    panel.classList.toggle("at-side", Boolean(step.sign));
    if (step.sign) panel.style.top = Math.max(0, bar.getBoundingClientRect().bottom) + 10 + "px";
    panel.classList.toggle("closed", Boolean(step.why));
    const why = panel.querySelector(".gate-why");
    if (why && why.textContent !== step.why) why.textContent = step.why;
  });
  return document.querySelectorAll(".step .gate-why").length === steps.length;
}
function show(step, scroll) {
  const [from, to] = [current, step].map((each) => props.value.steps[each - 1]);
  current = step;
  beside = 0;
  draw();
  if (from.left && from !== to) trigger(from.left);
  if (to.opened && !to.why) trigger(to.opened);
  if (scroll) window.scrollTo({ top: 0 });
  window.dispatchEvent(new Event("resize")); // plots measure themselves when they become visible
}
function button(step, i) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "stepper" + (i + 1 === current || i + 1 === beside ? " current" : "") + (step.done ? " done" : "") + (step.why ? " shut" : "")
    + (step.sign ? " beside" : "");
  if (i + 1 === current) made.setAttribute("aria-current", "step");
  const sign = step.sign || (step.done && i + 1 !== current ? "✓" : String(i + 1));
  const parts = [["number", sign], ["title", step.title], ["note", step.note]];
  for (const [name, text] of parts) {
    const part = document.createElement("span");
    part.className = name;
    part.textContent = text;
    made.append(part);
  }
  made.setAttribute("aria-label", step.sign ? step.title : `Step ${i + 1}: ${step.title}`);
  if (step.why) made.title = step.why;
  if (step.sign) made.setAttribute("aria-expanded", String(i + 1 === beside));
  made.addEventListener("click", () => {
    if (!step.sign) return show(i + 1, true);
    beside = beside ? 0 : i + 1;
    draw();
    if (beside) trigger(step.opened);
  });
  return made;
}
function draw() {
  const focused = bar.contains(document.activeElement) ? [...bar.children].indexOf(document.activeElement) : -1;
  bar.replaceChildren(...props.value.steps.map(button));
  if (focused >= 0) bar.children[focused].focus({ preventScroll: true });
  panels();
}
for (const moved of ["scroll", "resize"]) // the bar moves until it sticks
  addEventListener(moved, () => { if (beside) panels(); }, { passive: true });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !beside) return;
  const closed = beside;
  beside = 0;
  draw();
  bar.children[closed - 1].focus();
});
watch("value", () => {
  const [next, step] = props.value.go;
  if (next === ticket) return draw();
  ticket = next;
  show(step, true);
});
ticket = props.value.go[0];
draw();
// Panels may be mounted after the bar.
const observer = new MutationObserver(() => panels() && observer.disconnect());
if (!panels()) observer.observe(document.body, { childList: true, subtree: true });
