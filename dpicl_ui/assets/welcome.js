// Plays the recorded run of the first page on its small live screen, over and over. `props.value`: the screen's values,
// one a token (dpicl_ui/welcome.py). Whoever asked for less motion, and whoever stops it, sees it stand still.
const PACE = 600, REST = 4000; // milliseconds: between two tokens, and before it begins again
element.replaceChildren();
const button = make("button", "replay-button play-button", element);
button.type = "button";
let at = props.value.length - 1, timer = null;

function show(place) {
  at = place;
  const on = document.querySelector("#welcome-live .html-container > *");
  if (on) on.dispatchEvent(new CustomEvent("replay", { detail: { value: props.value[at] } }));
}
function next() {
  if (!element.isConnected) return;
  if (element.offsetParent) show((at + 1) % props.value.length); // not while it is hidden
  timer = setTimeout(next, at === props.value.length - 1 ? REST : PACE);
}
function said(plays) {
  button.textContent = plays ? "❚❚ Pause" : "▶ Play";
  button.setAttribute("aria-pressed", String(plays));
}
function toggle() {
  if (timer === null) {
    said(true);
    next();
  } else {
    clearTimeout(timer);
    timer = null;
    said(false);
  }
}
button.addEventListener("click", toggle);
said(false);
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) toggle();
