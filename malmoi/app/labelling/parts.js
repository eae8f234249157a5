// Elements of the labelling card, and what others on the page are.

function labelButton(label) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.label = label.name;
  button.style.setProperty("--color", label.color);
  button.title = label.meaning;
  if (label.key) button.setAttribute("aria-keyshortcuts", label.key);
  button.append(keyOf(label.key?.toUpperCase()));
  button.append(Object.assign(document.createElement("span"), { textContent: label.title }));
  return button;
}

function keyOf(name) {
  const key = document.createElement("kbd");
  key.textContent = name ?? "";
  key.hidden = !name;
  return key;
}

function isButton(element) {
  return element instanceof Element && element.matches("button, a, summary, [role=button], [role=tab]");
}

function isField(element) {
  if (element.matches("input[type=checkbox], input[type=radio], input[type=button]")) return false;
  return element.matches("input, textarea, select, [role=listbox], [role=option], [role=slider]") || element.isContentEditable;
}

function titlesOf(names, labels) {
  const titles = new Map(labels.map((label) => [label.name, label.title]));
  return names.map((name) => titles.get(name) ?? name).join(", ");
}
