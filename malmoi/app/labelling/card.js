// The labelling card: shows the text to come at once, and tells the server afterwards. Words of people
// (texts, names of labels, notes, reasons) are set as textContent and title only.

const FEW = 30; // texts left at which more are asked for
const MOST_ACTS = 100; // sent at a time
const KEPT = 5; // texts that stay when a model has found a new order
const PATIENCE = 4_000; // ms for an answer, doubled after each silence
const LONGEST_PATIENCE = 30_000;
const WHILE_LEARNING = 3_000; // ms between two looks for what a model has learnt
const ASK_AGAIN = 20_000; // ms, where nothing was left
// From which on the buttons of labels are smaller, so that the text stays in view (assumption: as many
// as the digits, which are the keys of the first nine).
const MANY_LABELS = 9;

// What outlives a drawing of the page, by whose work it is.
const sessions = new Map();

class Card {
  constructor(root) {
    this.root = root;
    this.at = {};
    for (const element of root.querySelectorAll("[data-at]")) this.at[element.dataset.at] = element;
    this.sequence = 0;
    this.asked = null; // the message that waits for an answer
    this.patience = PATIENCE;
    this.wish = {}; // what the next message asks for, beside saving
    this.stopped = false;
    this.active = Date.now();
    // The link that led here would keep the focus, and Enter.
    if (!isField(document.activeElement ?? document.body)) document.activeElement?.blur?.();
    this.life = new AbortController();
    const { signal } = this.life;
    const listen = (target, kind, act) => target.addEventListener(kind, act, { signal });
    // Before Streamlit's own keys, one of which offers to clear its caches.
    window.addEventListener("keydown", (event) => this.key(event), { capture: true, signal });
    listen(root, "click", (event) => this.click(event));
    listen(this.at.noteForm, "submit", (event) => this.saveNote(event));
    listen(this.at.recent, "toggle", () => this.at.recent.open && this.ask("recent", true));
    listen(window, "pagehide", () => this.leave());
    listen(window, "online", () => this.look());
    listen(window, "storage", (event) => this.follow(event));
    listen(document, "visibilitychange", () => this.look());
    this.timer = window.setInterval(() => this.look(), 1_000);
  }

  // Nobody has to wait for texts that nobody looks at; what is not saved yet is kept for its person.
  leave() {
    this.keepNote();
    if (!this.data || this.session.outbox.size) return;
    const address = window.location.pathname.replace(/[^/]*$/, "leave");
    navigator.sendBeacon(`${address}?card=${encodeURIComponent(this.data.card)}`);
  }

  remove() {
    this.leave();
    this.life.abort();
    window.clearInterval(this.timer);
  }

  // ---- from the server

  receive(host) {
    this.host = host;
    const { data } = host;
    if (this.scope !== data.scope) this.begin(data.scope);
    this.data = data;
    this.say = data.say;
    this.drawLabels();
    if (data.answer.id !== this.answered) {
      this.answered = data.answer.id;
      this.take(data.answer);
    }
    this.draw();
    this.send();
  }

  begin(scope) {
    this.keepNote(); // it is of the project and the person that were open
    const left = this.session?.outbox.size;
    this.scope = scope;
    this.root.dataset.scope = scope;
    if (!sessions.has(scope)) sessions.set(scope, new Session(scope));
    this.session = sessions.get(scope);
    this.asked = null;
    this.at.notices.replaceChildren();
    if (left) this.notice(this.say.elsewhere.replace("{}", left));
    this.shown = undefined; // neither a text nor that there is none
  }

  take(answer) {
    const { outbox, line } = this.session;
    // Without a number it is the first of a page that was drawn anew: a message may have been lost.
    if (this.asked && (answer.sequence === this.asked.sequence || answer.sequence === null)) {
      this.asked = null;
      this.patience = PATIENCE;
    }
    this.heard = Date.now();
    if (answer.past) this.session.remember(answer.past, this.data);
    for (const id of answer.saved) outbox.drop(id);
    if (answer.saved.length && this.at.recent.open) this.wish.recent = true;
    for (const { id, reason } of answer.refused) {
      const act = outbox.refuse(id, reason);
      if (act) line.refuse(act);
      if (act) this.notice(`${this.say.refused} ${reason}`, "refused");
      // What is gone from here without being saved is not called saved.
      if (this.session.last?.act.request_id === id) this.session.last = null;
    }
    // Labels may have been renamed or retired since the page was drawn; else all would be refused.
    if (answer.refused.length) window.malmoi?.drawAnew();
    if (answer.failed) this.notice(`${this.say.failed} ${answer.failed}`, "failed");
    else this.at.notices.querySelector("[data-name=failed]")?.remove();
    if (answer.held) {
      if (answer.renewed) line.forget(KEPT);
      // Also of a page that was drawn anew, with what is known of its texts by now.
      line.renew(answer.texts);
      this.drawSuggestion(line.current?.suggestion);
      this.drawCells(line.current);
      // Without words that were marked.
      if (answer.renewed && this.shown) this.at.text.textContent = this.shown.text;
      line.receive(answer.texts, answer.held);
      this.scores = answer.scores;
      this.leased = Date.now();
      this.exhausted = !answer.more;
      // The server keeps some of the last texts for others: it is asked again once there are fewer.
      this.enough = answer.texts.length ? Infinity : line.texts.length;
      this.others = answer.others;
      this.stopped = false;
    }
    if (answer.stopped) {
      this.stopped = true;
      line.texts = [];
    }
    if (answer.words) this.explained = answer.words;
    if (answer.recent) this.drawRecent(answer.recent);
  }

  // ---- to the server

  ask(name, value) {
    this.wish[name] = value;
    this.send();
  }

  // Sends what is not acknowledged and asks for what is needed, one message at a time.
  send() {
    if (this.asked) return;
    const { outbox, line } = this.session;
    const acts = outbox.first(MOST_ACTS);
    const wants = this.wantsTexts();
    if (!acts.length && !wants && !Object.keys(this.wish).length) return;
    this.sequence += 1;
    this.asked = { sequence: this.sequence, moment: Date.now() };
    // What only this page shows of an act is not sent.
    const sent = acts.map(({ text, told, ...act }) => act);
    const message = { sequence: this.sequence, scope: this.scope, acts: sent, wants };
    Object.assign(message, { have: line.have(), scores: this.scores ?? null });
    if (wants) this.exhausted = false;
    // Stopping waits until everything is saved.
    const { stop, ...wish } = this.wish;
    Object.assign(message, wish, stop && acts.length === outbox.size ? { stop } : {});
    this.wish = stop && !message.stop ? { stop } : {};
    this.host.setTriggerValue("exchange", message);
  }

  wantsTexts() {
    if (this.stopped || this.wish.stop) return false;
    const { line } = this.session;
    const since = Date.now() - (this.leased ?? 0);
    const { length } = line.texts;
    if ((this.exhausted || length >= this.enough) && since < ASK_AGAIN) return false;
    if (length < FEW && !(this.exhausted && document.hidden)) return true;
    // Leases are renewed for somebody who works, not for a page that was left open.
    const lease = this.data.lease * 1_000;
    return since > lease / 3 && Date.now() - this.active < lease;
  }

  // Looked after once a second: a message without an answer is given up, and sent again.
  look() {
    if (!this.root.isConnected) this.remove();
    if (!this.data || !this.root.isConnected) return;
    if (this.asked && Date.now() - this.asked.moment > this.patience) {
      this.asked = null;
      this.patience = Math.min(2 * this.patience, LONGEST_PATIENCE);
      // A server that was started anew knows nothing of this page until all of it is drawn.
      window.malmoi?.drawAnew();
      this.silent = this.session.outbox.size > 0;
    }
    // While a model learns, what it says of these texts may come at any moment.
    const waits = this.data.learning && !this.stopped && !document.hidden && !this.asked;
    if (waits && Date.now() - (this.heard ?? 0) > WHILE_LEARNING) this.wish.look = true;
    this.send();
    this.drawState();
  }

  // ---- what the visitor does

  key(event) {
    const field = event.composedPath()[0];
    if (field instanceof Element && isField(field)) {
      if (field === this.at.note && event.key === "Escape" && !event.isComposing) this.closeNote();
      return;
    }
    if (!this.data || !this.root.isConnected || document.querySelector("[role=dialog]")) return;
    const meaning = meaningOf(event, this.data.labels);
    if (!meaning || !this.can(meaning, field)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (meaning.label !== undefined) this.choose(meaning.label);
    else this.run(meaning.command);
  }

  // Enter presses the button that has the focus, unless it is a label of a text with several.
  can({ command }, field) {
    if (command === "save") return this.data.multi && !(isButton(field) && !field.dataset.label);
    return command !== "close" || !this.at.help.hidden;
  }

  click(event) {
    const button = event.target.closest("button");
    if (!button) return;
    this.active = Date.now();
    if (button.dataset.label !== undefined) {
      this.choose(this.data.labels.find((label) => String(label.id) === button.dataset.label));
    } else if (button.dataset.do) this.run(button.dataset.do);
    else if (button.change) this.change(button.change);
    else if (button.refused) this.answerRefused(button.refused, button.dataset.answer);
  }

  run(command) {
    this.active = Date.now();
    const { line } = this.session;
    if (command === "help" || command === "close") {
      this.at.help.hidden = command === "close" || !this.at.help.hidden;
    } else if (command === "undo") this.undo();
    else if (command === "again") this.resume();
    else if (command === "retry") this.retry();
    else if (command === "stop") this.ask("stop", true);
    else if (!line.current) return;
    else if (command === "skip") this.decide("skip", []);
    else if (command === "save") this.saveChosen();
    else if (command === "flag") this.flag();
    else if (command === "note") this.openNote();
    else if (command === "words") this.ask("words", { text_id: line.current.text_id });
    this.draw();
  }

  // The same person in another tab has the same texts: what is decided there is not asked here.
  follow(event) {
    const act = this.session?.outbox.elsewhere(event);
    if (!act) return;
    this.session.line.follow(act);
    this.draw();
    this.send();
  }

  resume() {
    this.stopped = false;
    this.exhausted = false;
    this.wish = {};
    this.ask("resume", true);
  }

  choose(label) {
    const text = this.session.line.current;
    if (!text) return;
    if (!this.data.multi) {
      this.decide("label", [label]);
      return;
    }
    text.chosen = new Set(text.chosen ?? []);
    if (!text.chosen.delete(label.id)) text.chosen.add(label.id);
    this.draw();
  }

  saveChosen() {
    const { chosen } = this.session.line.current;
    this.decide("label", chosen ? this.data.labels.filter((label) => chosen.has(label.id)) : []);
  }

  decide(kind, labels) {
    const { line } = this.session;
    const text = line.current;
    const together = kind === "label" && this.at.together.checked && text.alike > 0;
    const shown = labels.map(({ id, name }) => ({ id, name }));
    const told = this.decision(kind, labels.map((label) => label.name));
    const more = { alike: together, of_kind: text.kind, again: text.again ?? false };
    const act = this.add(text, { kind, labels: shown, told, ...more });
    line.advance(act);
    this.session.last = { act, label: told };
    if (kind === "label") this.session.moments.push(Date.now());
    this.active = Date.now();
    this.draw();
    this.send();
  }

  undo() {
    const { line } = this.session;
    const last = line.back();
    if (!last) {
      this.at.recent.open = true; // what was done before the page was loaded
      return;
    }
    const { text_id, sha256, text, request_id, kind, alike, again } = last.act;
    const more = { kind: "undo", withdraws: request_id, of: kind, alike, again };
    this.add({ text_id, sha256, text }, more);
    if (kind === "label") this.session.moments.pop();
    this.session.last = null;
    this.draw();
    this.send();
  }

  flag() {
    const text = this.session.line.current;
    text.flagged = !text.flagged;
    this.add(text, { kind: "flag", flagged: text.flagged });
    this.send();
  }

  openNote() {
    this.keepNote(); // where it is open already
    this.at.noteForm.hidden = false;
    this.at.note.value = this.session.line.current.note ?? "";
    this.noted = this.session.line.current;
    this.at.note.focus();
  }

  closeNote() {
    this.at.noteForm.hidden = true;
    // The next digit is a label again, not a letter of the note.
    this.at.note.blur();
  }

  saveNote(event) {
    event.preventDefault();
    this.keepNote();
    this.draw();
    this.send();
  }

  // Also where a label is clicked, or the text leaves the screen, while a note is being written.
  keepNote() {
    if (this.at.noteForm.hidden) return;
    const note = this.at.note.value.trim();
    this.closeNote();
    // An earlier version of the card, updated with the form open, did not say of which text.
    if (!this.noted || note === (this.noted.note ?? "")) return;
    this.noted.note = note;
    this.add(this.noted, { kind: "note", note });
  }

  change(work) {
    const { line } = this.session;
    // Of several labels those that it has are chosen, so that one more does not take them away.
    const had = this.data.labels.filter((label) => work.labels.includes(label.name));
    const chosen = new Set(had.map((label) => label.id));
    line.put({ ...work, chosen, again: work.state === "labelled", previous: work.labels });
    this.at.recent.open = false;
    this.draw();
    this.at.text.focus();
  }

  // Throws away what the server has refused, or shows its text to be decided again.
  answerRefused(act, answer) {
    const { outbox, line } = this.session;
    const { request_id, text_id, sha256, text } = act;
    if (answer === "discard") outbox.drop(request_id);
    else line.put({ text_id, sha256, text });
    this.draw();
    this.at.text.focus();
  }

  // Sends all that was refused once more, as it was: what hindered it may be mended.
  retry() {
    const { outbox, line } = this.session;
    for (const act of outbox.retry()) line.follow(act);
    this.send();
  }

  add(text, act) {
    const looked = this.shown?.text_id === text.text_id ? (performance.now() - this.shownAt) / 1_000 : 0;
    return this.session.outbox.add({
      ...act,
      text_id: text.text_id,
      sha256: text.sha256,
      text: text.text,
      offer: text.offer ?? null,
      seconds: looked,
      guideline_version: this.data.guideline,
    });
  }

  // A text that may have several labels can also have none of them, which is no skip.
  decision(kind, labels) {
    return kind === "skip" ? this.say.skipped : titlesOf(labels, this.data.labels) || this.say.none;
  }

  // ---- what is seen

  draw() {
    const text = this.session.line.current;
    if (text !== this.shown) this.drawText(text);
    this.drawWords(text);
    this.at.similar.hidden = !text || !this.data.similar;
    if (text && this.data.similar) this.at.similar.href = `${this.data.similar}&similar=${text.text_id}`;
    const chosen = text?.chosen;
    for (const button of this.at.labels.children) {
      if (this.data.multi) button.setAttribute("aria-pressed", String(chosen?.has(Number(button.dataset.label)) ?? false));
      button.disabled = !text;
    }
    for (const button of this.at.tools.children) {
      if (button.dataset.do === "undo") button.disabled = !this.session.line.past.length && !this.data.counts.mine;
      else if (button.dataset.needs) button.disabled = !text;
      if (button.dataset.do === "flag") button.setAttribute("aria-pressed", String(text?.flagged ?? false));
      if (button.dataset.do === "note") button.classList.toggle("on", Boolean(text?.note));
    }
    this.drawState();
  }

  drawText(text) {
    const { at, say } = this;
    this.keepNote();
    this.shown = text;
    this.shownAt = performance.now();
    at.text.hidden = !text;
    at.empty.hidden = Boolean(text);
    at.text.textContent = text?.text ?? "";
    at.text.dataset.id = text?.text_id ?? "";
    at.text.scrollTop = 0;
    at.previous.hidden = !text?.previous;
    const before = text?.previous && this.decision(text.again ? "label" : "skip", text.previous);
    at.previous.textContent = before ? `${say.previous} ${before}` : "";
    this.drawSuggestion(text?.suggestion);
    this.drawCells(text);
    at.togetherRow.hidden = !text?.alike;
    at.togetherText.textContent = text?.alike ? say.together.replace("{}", text.alike) : "";
    const { last } = this.session;
    at.spoken.textContent = `${last ? `${last.label}. ` : ""}${text?.text ?? ""}`;
  }

  drawSuggestion(suggestion) {
    this.at.model.hidden = !suggestion;
    if (suggestion) this.at.suggestion.textContent = suggestionLine(suggestion, this.data);
  }

  // Columns of the text's row that the visitor wants to see.
  drawCells(text) {
    const cells = text?.cells ?? [];
    this.at.cells.hidden = !cells.length;
    const pairs = cells.flatMap(([name, cell]) => [make("dt", { textContent: name }), make("dd", { textContent: cell })]);
    this.at.cells.replaceChildren(...pairs);
  }

  drawWords(text) {
    const found = this.explained;
    if (!text || !found || found.drawn || found.text_id !== text.text_id) return;
    found.drawn = true;
    if (found.words && found.sha256 === text.sha256) this.at.text.replaceChildren(...markedWords(text.text, found.words));
    else if (found.reason) this.notice(found.reason);
  }

  drawState() {
    const { at, say, session } = this;
    const waiting = session.outbox.size;
    const { mine, open, total } = this.data.counts;
    const { annotators } = this.data;
    const own = mine + session.outbox.uncounted();
    // The project was counted seconds ago; where one label is enough, it has at least these.
    const done = Math.min(total, Math.max(total - open, annotators > 1 ? 0 : own));
    at.progress.textContent = (annotators > 1 ? say.progressOfSeveral : say.progress)
      .replace("{k}", annotators)
      .replace("{mine}", own.toLocaleString())
      .replace("{done}", done.toLocaleString())
      .replace("{total}", total.toLocaleString());
    // A text that waits for others is done in part.
    at.bar.value = total ? Math.max(total - open, own / annotators) / total : 0;
    const pace = paceOf(session.moments, Date.now());
    const told = pace ? say.pace.replace("{}", pace.toLocaleString()) : "";
    at.pace.textContent = [told, this.data.worth].filter(Boolean).join(" · ");
    const { last } = session;
    const state = last && !session.outbox.has(last.act.request_id) ? say.saved : say.saving;
    const news = last ? `${last.label} ${state}` : "";
    const lost = this.silent && waiting ? say.offline : say.unsaved;
    at.saving.textContent = waiting ? `${news ? `${news} · ` : ""}${lost.replace("{}", waiting)}` : news;
    this.root.dataset.unsaved = waiting;
    if (!waiting) this.silent = false;
    at.saving.classList.toggle("waiting", waiting > 0);
    this.drawRefused();
    if (!session.line.current) this.drawEmpty();
  }

  drawRefused() {
    const { at, say } = this;
    const acts = [...this.session.outbox.refused.values()];
    const drawn = JSON.stringify(acts.map((act) => act.request_id));
    if (drawn === this.drawnRefused) return;
    this.drawnRefused = drawn;
    at.refused.hidden = !acts.length;
    at.refusedTitle.textContent = say.refusedTitle.replace("{}", acts.length);
    at.retry.textContent = say.retry;
    at.refusedList.replaceChildren(...acts.map((act) => this.refusedItem(act)));
  }

  refusedItem(act) {
    const { say } = this;
    const told = { undo: say.undo, flag: say.flag, note: `${say.note}: ${act.note}` }[act.kind] ?? act.told;
    const decided = make("b", { textContent: told ?? this.decision(act.kind, act.labels) });
    const text = make("span", { textContent: act.text ?? say.textNumber.replace("{}", act.text_id) });
    const answers = isDecision(act) && act.text ? ["decide", "discard"] : ["discard"];
    const buttons = answers.map((answer) => {
      const button = make("button", { type: "button", className: "small", textContent: say[answer], refused: act });
      button.dataset.answer = answer;
      return button;
    });
    return make("li", {}, decided, text, make("i", { textContent: act.refused }), ...buttons);
  }

  drawEmpty() {
    const { at, say } = this;
    const why = this.stopped ? "stopped" : this.exhausted ? "nothing" : "coming";
    at.emptyText.textContent = why === "nothing" ? this.whyNothing() : say[why];
    at.again.textContent = this.stopped ? say.resume : say.lookAgain;
    at.again.hidden = why === "coming";
    this.root.dataset.state = why;
  }

  whyNothing() {
    if (!this.others) return this.say.nothing;
    const minutes = Math.max(1, Math.round(this.data.lease / 60));
    return this.say.others.replace("{n}", this.others.toLocaleString()).replace("{m}", minutes);
  }

  drawLabels() {
    const { labels, multi } = this.data;
    const drawn = JSON.stringify([labels, multi, this.say]);
    if (drawn === this.drawnLabels) return;
    this.drawnLabels = drawn;
    const { at, say } = this;
    at.labels.setAttribute("aria-label", multi ? say.labelsMulti : say.labels);
    at.text.setAttribute("aria-label", say.text);
    at.tools.setAttribute("aria-label", say.tools);
    at.note.placeholder = say.noteHint;
    at.note.setAttribute("aria-label", say.note);
    at.recentTitle.textContent = say.recent;
    at.bar.setAttribute("aria-label", say.projectProgress);
    at.labels.replaceChildren(...labels.map((label) => labelButton(label)));
    at.labels.classList.toggle("many", labels.length >= MANY_LABELS);
    const tools = ["undo", "skip", "flag", "note", "help", "stop"];
    if (multi) tools.unshift("save");
    at.tools.replaceChildren(...tools.map((name) => this.toolButton(name)));
    at.similar.textContent = say.similar;
    at.words.textContent = say.words;
    at.words.append(keyOf(say.keys[shownCode(this.codes("words"))]));
    this.drawHelp();
  }

  codes(command) {
    if (command === "save") return ["Enter"];
    return command in COMMAND_KEYS ? codesOf(command, this.data.labels) : command === "help" ? ["Help"] : [];
  }

  toolButton(name) {
    const title = make("span", { textContent: this.say[name] });
    const button = make("button", { type: "button" }, title, keyOf(this.say.keys[shownCode(this.codes(name))]));
    button.dataset.do = name;
    if (["save", "skip", "flag", "note"].includes(name)) button.dataset.needs = "text";
    if (name === "save") button.className = "strong";
    return button;
  }

  drawHelp() {
    const { say } = this;
    const rows = [
      [this.data.labels.map((label) => label.key).filter(Boolean).join(" "), this.data.multi ? say.labelsMulti : say.labels],
      ...["save", "undo", "skip", "flag", "note", "words", "help"]
        .filter((name) => name !== "save" || this.data.multi)
        .map((name) => [this.codes(name).map((code) => say.keys[code]).join(" · "), say[name]]),
    ];
    const items = rows.flatMap(([keys, does]) => [make("dt", { textContent: keys }), make("dd", { textContent: does })]);
    this.at.help.replaceChildren(make("h2", { textContent: say.helpTitle }), make("dl", {}, ...items));
  }

  drawRecent(works) {
    const { at, say } = this;
    at.recentList.replaceChildren(
      ...works.map((work) => {
        const decision = this.decision(work.state === "skipped" ? "skip" : "label", work.labels);
        const comments = work.comments ?? [];
        const note = work.note && !comments.length ? ` — ${work.note}` : "";
        const words = `${work.flagged ? "⚑ " : ""}${work.text}${note}`;
        const thread = comments.map(({ person, text, at: when }) =>
          make("small", { textContent: `${person} · ${momentOf(when)}: ${text}` }),
        );
        const change = { type: "button", className: "small", textContent: say.change, change: work };
        return make("li", {}, make("b", { textContent: decision }), make("span", { textContent: words }), make("button", change), ...thread);
      }),
    );
    const answered = works.filter((work) => work.answered).length;
    at.recentTitle.textContent = [say.recent, answered && say.answered.replace("{}", answered)].filter(Boolean).join(" · ");
    if (!works.length) at.recentList.textContent = say.noWork;
  }

  notice(sentence, name = "") {
    const { notices } = this.at;
    if (name) notices.querySelector(`[data-name=${name}]`)?.remove();
    const close = make("button", { type: "button", textContent: "×" });
    close.setAttribute("aria-label", this.say.close);
    const notice = make("div", {}, make("span", { textContent: sentence }), close);
    notice.dataset.name = name;
    close.addEventListener("click", () => notice.remove());
    notices.append(notice);
    while (notices.children.length > 3) notices.firstChild.remove();
  }
}

// What Streamlit calls at every drawing, with what the server says now.
export default function draw(host) {
  const root = host.parentElement.querySelector(".card");
  if (!(root.card instanceof Card)) {
    // Where the app was updated while the page was open, the card of its earlier version stands here
    // and hears every key; what it has not sent is in the browser's storage.
    root.card?.remove();
    root.card = new Card(root);
  }
  const { card } = root;
  card.receive(host);
  // Streamlit also calls this for a drawing that another one overtook; the card lives on then.
  return () => card.look();
}
