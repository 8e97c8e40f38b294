// A form with one line for each column of a file: is it taken in, of what type, how long. `props.value`: see
// schema_form.py; fires `input` when something was settled. Names come out of a file, and arrive as text nodes.
let view = null, own = "";
function settle() {
  own = JSON.stringify(view);
  props.value = JSON.parse(own);
  trigger("input");
}
function asked(line, place) {
  place.replaceChildren();
  const kind = view.kinds[line.kind] || {};
  const words = kind.limit || kind.values;
  if (!words) return;
  const label = make("label", "schema-asked", place);
  make("span", "", label, words);
  const field = make("input", "", label);
  const name = kind.limit ? "limit" : "values";
  field.type = kind.limit ? "number" : "text";
  if (kind.limit) { field.min = "1"; field.inputMode = "numeric"; }
  field.value = line[name] === null || line[name] === undefined ? "" : String(line[name]);
  field.addEventListener("change", () => {
    line[name] = kind.limit && field.value !== "" ? Number(field.value) : field.value;
    settle();
  });
}
function row(line) {
  const made = make("div", "schema-line", element);
  const label = make("label", "schema-name", made);
  const box = make("input", "", label);
  box.type = "checkbox";
  box.checked = line.taken;
  box.disabled = line.owner;
  make("span", "", label, line.name);
  if (line.owner) {
    make("span", "schema-owner", made, "Says whose row it is: the model never sees it.");
    return;
  }
  const type = make("select", "", made);
  type.setAttribute("aria-label", `Type of ${line.name}`);
  for (const [value, kind] of Object.entries(view.kinds)) make("option", "", type, kind.title).value = value;
  type.value = line.kind;
  const place = make("div", "schema-more", made);
  const show = () => made.classList.toggle("out", !line.taken);
  box.addEventListener("change", () => { line.taken = box.checked; show(); settle(); });
  type.addEventListener("change", () => {
    line.kind = type.value;
    line.limit = view.kinds[line.kind].usual ?? null;
    asked(line, place);
    settle();
  });
  asked(line, place);
  show();
}
function draw() {
  const given = JSON.stringify(props.value ?? null);
  if (given === own) return; // what was typed here: a field in use stays as it is
  own = given;
  view = JSON.parse(given);
  element.replaceChildren();
  for (const line of view?.lines || []) row(line);
}
element.classList.add("schema");
watch("value", draw);
draw();
