// Elements of the labelling card, and what others on the page are.

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function labelButton(label) {
  const title = make("span", { textContent: label.title });
  const button = make("button", { type: "button", title: label.meaning }, keyOf(label.key?.toUpperCase()), title);
  button.dataset.label = label.id;
  button.style.setProperty("--color", label.color);
  if (label.key) button.setAttribute("aria-keyshortcuts", label.key);
  return button;
}

function keyOf(name) {
  return make("kbd", { textContent: name ?? "", hidden: !name });
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

// A moment as the browser's language writes it, without the year.
function momentOf(at) {
  const parts = { month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" };
  return new Date(at).toLocaleString([], parts);
}
