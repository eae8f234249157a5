// The keys of the labelling card: which of them undoes, skips, flags; what a press of one means.

// By the place of a key (`event.code`), so that they work while the Hangul input method is on. Each
// has a key for the left hand and others for the right; a label that has the letter comes first.
export const COMMAND_KEYS = {
  undo: ["KeyZ", "Backspace"],
  skip: ["KeyX", "Minus", "NumpadSubtract"],
  flag: ["KeyC", "Equal", "NumpadAdd"],
  note: ["KeyV", "Slash", "NumpadDivide"],
  words: ["KeyB", "Quote", "NumpadMultiply"],
};

// "Digit1" and "Numpad1" are "1", "KeyA" is "a"; null for any other place.
export function characterAt(code) {
  const found = /^(?:Digit|Numpad|Key)([0-9A-Z])$/.exec(code);
  return found ? found[1].toLowerCase() : null;
}

// The codes that still give a command, with these labels.
export function codesOf(command, labels) {
  const taken = new Set(labels.map((label) => label.key).filter(Boolean));
  return COMMAND_KEYS[command].filter((code) => !taken.has(characterAt(code)));
}

// The one that is shown: not a letter, for labels may take those, and the key would seem to change.
export function shownCode(codes) {
  return codes.find((code) => !code.startsWith("Key")) ?? codes[0];
}

// What a keydown asks for: {label}, {command}, or null for what is none of the card's.
export function meaningOf(event, labels) {
  if (event.isComposing || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.shiftKey) return event.code === "Slash" ? { command: "help" } : null;
  const character = characterAt(event.code);
  const label = character && labels.find((one) => one.key === character);
  if (label) return { label };
  const command = Object.keys(COMMAND_KEYS).find((name) => codesOf(name, labels).includes(event.code));
  if (command) return { command };
  if (event.code === "Enter" || event.code === "NumpadEnter") return { command: "save" };
  return event.code === "Escape" ? { command: "close" } : null;
}
