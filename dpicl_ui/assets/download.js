// Saves `props.value` = {ticket, name, type, bytes in base 64} as a file, made in the browser: nothing is left in a
// temporary folder.
watch("value", () => {
  const { name, type, bytes } = props.value || {};
  if (!bytes) return;
  const content = Uint8Array.from(atob(bytes), (each) => each.charCodeAt(0));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
