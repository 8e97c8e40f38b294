// Shows `props.value` = {ticket, plan} as a link to this page that opens with the plan, and copies it where it may.
function note(words) {
  const made = document.createElement("p");
  made.className = "notice good";
  made.setAttribute("role", "status");
  made.textContent = words;
  element.append(made);
}
watch("value", async () => {
  const { plan } = props.value || {};
  element.replaceChildren();
  if (!plan) return;
  const field = document.createElement("input");
  Object.assign(field, { type: "text", readOnly: true, value: `${location.origin}${location.pathname}#${plan}` });
  field.setAttribute("aria-label", "Link to these settings");
  field.addEventListener("focus", () => field.select());
  element.append(field);
  const what = "Whoever opens it gets these settings of step 2: no data, no name, no prompt. It starts nothing.";
  try {
    await navigator.clipboard.writeText(field.value); // not there without https, but for this machine's own address
    note(`Copied. ${what}`);
  } catch {
    note(`Copy it from here. ${what}`);
  }
});
