// Saves `props.value` = {ticket, name, text} as a file, made in the browser: nothing is left in a temporary folder.
watch("value", () => {
  const { name, text } = props.value || {};
  if (!text) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
