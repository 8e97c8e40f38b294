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
