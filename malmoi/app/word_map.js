// Blue and orange of Okabe and Ito, which colour-blind people can tell apart; the line below a word
// says the same without colour.
const FOR = "0, 114, 178";
const AGAINST = "213, 94, 0";

export default function ({ data, parentElement }) {
  const old = parentElement.querySelector(".words");
  const words = document.createElement("div");
  words.className = "words";
  words.tabIndex = 0;
  for (const piece of data.pieces) {
    if (piece.strength === undefined) {
      words.append(piece.text);
      continue;
    }
    const span = document.createElement("span");
    span.textContent = piece.text;
    span.title = piece.title;
    const weight = Math.min(1, Math.abs(piece.strength));
    const color = piece.strength < 0 ? AGAINST : FOR;
    span.style.background = `rgba(${color}, ${(0.6 * weight).toFixed(3)})`;
    if (weight > 0.25) {
      const style = piece.strength < 0 ? "dotted" : "solid";
      span.style.borderBottom = `2px ${style} rgb(${color})`;
      span.setAttribute("aria-label", `${piece.text} (${piece.title})`);
    }
    words.append(span);
  }
  if (old) old.replaceWith(words);
  else parentElement.append(words);
}
