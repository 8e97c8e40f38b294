// Hands the plan behind the address's `#` to the server, and takes it out of the address, which would soon be wrong.
const LONGEST = 4001; // one more than plan_link.py takes
function take() {
  if (!location.hash.startsWith("#plan=")) return;
  props.value = location.hash.slice(1, 1 + LONGEST);
  history.replaceState(null, "", location.pathname + location.search);
  trigger("input");
}
addEventListener("hashchange", take);
take();
