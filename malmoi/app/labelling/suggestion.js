// What the model says of the text on the labelling card: its suggestion, and the words that carried it.

// Times the probability by chance below which a suggestion is called unsure (assumption): of two
// labels that is 65%, of five 26%.
const UNSURE = 1.3;

// A suggestion in a line; where the model knows hardly more than chance, it says so.
function suggestionLine(suggestion, { labels, multi, say }) {
  const told = suggestion.map(({ label, score }) => `${titlesOf([label], labels)} ${Math.round(100 * score)}%`);
  const unsure = !multi && suggestion[0].score < UNSURE / labels.length;
  return `${unsure ? say.unsure : say.model} ${told.join(" · ")}`;
}

// A text as nodes, in which the words that speak for the suggestion are underlined and shaded, and those
// against it dotted.
function markedWords(text, words) {
  const most = Math.max(...words.map(([, , weight]) => Math.abs(weight)), 1e-9);
  return weighted(text, words).map((piece) => {
    const share = Math.abs(piece.weight ?? 0) / most;
    if (share < 0.15) return document.createTextNode(piece.text);
    const mark = make("mark", { textContent: piece.text, className: piece.weight > 0 ? "for" : "against" });
    mark.style.setProperty("--share", share.toFixed(2));
    return mark;
  });
}

// Pieces of a text, each with the weight of its word or null; places are in characters, not in units
// of UTF-16.
export function weighted(text, words) {
  const characters = Array.from(text);
  const pieces = [];
  let done = 0;
  for (const [start, end, weight] of words) {
    if (start > done) pieces.push({ text: characters.slice(done, start).join(""), weight: null });
    pieces.push({ text: characters.slice(start, end).join(""), weight });
    done = end;
  }
  if (done < characters.length) pieces.push({ text: characters.slice(done).join(""), weight: null });
  return pieces;
}
