// Stands before every script that draws: nodes with the text that they are given, and the entries of a legend.
const make = (tag, name, parent, words) => {
  const made = document.createElement(tag);
  made.className = name;
  if (words) made.textContent = words;
  parent.append(made);
  return made;
};
const entry = (legend, kind, words) => {
  const made = make("span", "legend-entry", legend);
  if (kind) make("i", kind, made);
  made.append(words);
};
// A screen of step 3 draws what the server sent last, or the place of a replay for as long as the replay is at one
// (replay.js): what the server sent before may arrive after it.
const screen = (draw) => {
  let replayed;
  const redraw = () => draw(replayed === undefined ? props.value : replayed);
  watch("value", redraw);
  element.addEventListener("replay", (event) => { replayed = event.detail.value; redraw(); });
  redraw();
};
// A field above a long list that hides the entries without its words; the words stay in the page.
let searchedFor = "";
const withSearch = (list) => {
  const field = document.createElement("input");
  field.type = "search";
  field.className = "list-search";
  field.value = searchedFor;
  field.placeholder = field.ariaLabel = "Search in this list";
  const filter = () => {
    searchedFor = field.value;
    const wanted = searchedFor.trim().toLowerCase();
    for (const each of list.children) each.style.display = each.textContent.toLowerCase().includes(wanted) ? "" : "none";
  };
  field.addEventListener("input", filter);
  list.before(field);
  filter();
};
