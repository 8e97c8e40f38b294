// Says after a reload that the file which was open is gone. `props.value`: these words; empty while a file is open. The
// browser keeps with the tab that one was open, and nothing of it.
const PLACE = "dpicl-open";
function kept(change) {
  try { return change(sessionStorage); } catch { return null; } // a frame of another site may have no storage
}
element.replaceChildren();
if (props.value && kept((tab) => tab.getItem(PLACE)))
  make("p", "notice", element, props.value).setAttribute("role", "status");
kept((tab) => tab.removeItem(PLACE));
watch("value", () => {
  if (props.value) return;
  element.replaceChildren();
  kept((tab) => tab.setItem(PLACE, "yes"));
});
