// Draws `props.value`, a list of elements as data (see tree.py), with createElement and text nodes only.
// Gradio's own templates are not used for data: they evaluate what was filled in, `${...}` included, as JavaScript.
const TAGS = new Set(["div", "span", "p", "h1", "h2", "h3", "h4", "ul", "ol", "li", "dl", "dt", "dd", "strong", "em", "small", "code",
  "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"]);
const ATTRIBUTES = new Set(["title", "role", "aria-label", "aria-live", "colspan", "scope"]);
function build(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const made = document.createElement(TAGS.has(node.tag) ? node.tag : "span");
  if (node.class) made.className = node.class;
  for (const [name, value] of Object.entries(node.attributes || {}))
    if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  for (const [name, value] of Object.entries(node.numbers || {}))
    if (Number.isFinite(value)) made.style.setProperty("--" + name, String(value));
  made.append(...(node.children || []).map(build));
  return made;
}
// A list that scrolls takes the focus, so that keys scroll it in every browser.
const scrolling = new ResizeObserver((entries) => {
  for (const { target } of entries)
    if (target.scrollHeight > target.clientHeight || target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
});
function draw(value) {
  scrolling.disconnect();
  const open = new Set([...element.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  element.replaceChildren(...(Array.isArray(value) ? value : []).map(build));
  for (const each of element.querySelectorAll("details > summary"))
    if (open.has(each.textContent)) each.parentElement.open = true;
  element.querySelectorAll(".searched").forEach(withSearch);
  for (const each of element.querySelectorAll(".demos, .counts, .scroll, dd")) scrolling.observe(each);
}
screen(draw);
