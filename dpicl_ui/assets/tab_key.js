// Tells the server by which random key this tab knows its finished run again after a reload. The browser keeps the key
// with the tab, and forgets it with the tab.
const PLACE = "dpicl-tab";
const BYTES = 16;
function key() {
  try {
    const known = sessionStorage.getItem(PLACE);
    if (known) return known;
    const drawn = crypto.getRandomValues(new Uint8Array(BYTES));
    const made = Array.from(drawn, (byte) => byte.toString(16).padStart(2, "0")).join("");
    sessionStorage.setItem(PLACE, made);
    return made;
  } catch { return ""; } // a frame of another site may have no storage: then nothing is kept
}
const known = key();
if (known) {
  props.value = known;
  trigger("input");
}
