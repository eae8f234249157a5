// What the labelling card knows without a page: the acts that the server has not acknowledged, and the
// texts to come.

// Names an act; the same one arriving twice is one row. randomUUID is missing on plain http.
export function newRequestId() {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Names a text: an id may be another text's in a database that was put in the place of the last one.
function nameOf({ text_id, sha256 }) {
  return `${text_id}/${sha256}`;
}

function isDecision({ kind }) {
  return kind === "label" || kind === "skip";
}

// Acts until the server has acknowledged them, also in the browser's storage, one entry each: tabs do
// not overwrite one another's, and a reload or a dead server loses none. Those that it has refused stay
// until the visitor throws them away or gives them again.
export class Outbox {
  constructor(scope, storage) {
    this.prefix = `malmoi/${encodeURIComponent(scope)}/`;
    this.storage = storage;
    this.acts = new Map();
    this.refused = new Map();
    this.last = 0;
    for (const act of this.kept()) {
      (act.refused ? this.refused : this.acts).set(act.request_id, act);
      this.last = act.order;
    }
  }

  kept() {
    const found = [];
    try {
      for (let place = 0; place < this.storage.length; place += 1) {
        const key = this.storage.key(place);
        if (key.startsWith(this.prefix)) found.push(JSON.parse(this.storage.getItem(key)));
      }
    } catch {
      // A browser that keeps nothing: what is not acknowledged lasts as long as the page.
    }
    return found.sort((one, other) => one.order - other.order);
  }

  add(act) {
    this.last = Math.max(Date.now(), this.last + 1);
    const whole = { ...act, request_id: newRequestId(), order: this.last };
    for (const old of isDecision(act) ? this.refused.values() : []) {
      if (isDecision(old) && nameOf(old) === nameOf(act)) this.drop(old.request_id);
    }
    this.acts.set(whole.request_id, whole);
    this.keep(whole);
    return whole;
  }

  keep(act) {
    try {
      this.storage.setItem(this.prefix + act.request_id, JSON.stringify(act));
    } catch {
      // As above, or it is full.
    }
  }

  // Sets aside what the server has refused, with why; returns it, or null. What was undone before
  // that is gone with its undo.
  refuse(requestId, reason) {
    const act = this.acts.get(requestId) ?? null;
    if (!act) return null;
    this.acts.delete(requestId);
    if (this.refused.has(act.withdraws)) {
      this.drop(act.withdraws);
      this.drop(requestId);
      return act;
    }
    act.refused = reason;
    this.refused.set(requestId, act);
    this.keep(act);
    return act;
  }

  // Lets what was refused wait again, in its order; returns it.
  retry() {
    const again = [...this.refused.values()];
    for (const act of again) {
      delete act.refused;
      this.keep(act);
    }
    const all = [...again, ...this.acts.values()].sort((one, other) => one.order - other.order);
    this.acts = new Map(all.map((act) => [act.request_id, act]));
    this.refused.clear();
    return again;
  }

  drop(requestId) {
    this.acts.delete(requestId);
    this.refused.delete(requestId);
    try {
      this.storage.removeItem(this.prefix + requestId);
    } catch {
      // As above.
    }
  }

  // The act that another tab of this browser has just kept for the same person; null for none.
  elsewhere(event) {
    if (!event.key?.startsWith(this.prefix) || !event.newValue) return null;
    const act = JSON.parse(event.newValue);
    return act.refused ? null : act;
  }

  first(count) {
    return [...this.acts.values()].slice(0, count);
  }

  has(requestId) {
    return this.acts.has(requestId);
  }

  get size() {
    return this.acts.size;
  }

  // Texts that have a decision here which is not withdrawn here.
  decided() {
    const decisions = new Map();
    for (const act of this.acts.values()) {
      if (isDecision(act)) decisions.set(act.request_id, nameOf(act));
      if (act.kind === "undo") decisions.delete(act.withdraws);
    }
    return new Set(decisions.values());
  }

  // How many labels more the visitor has given than the server has counted.
  uncounted() {
    let count = 0;
    for (const act of this.acts.values()) {
      if (act.again) continue;
      if (act.kind === "label") count += 1;
      if (act.kind === "undo" && act.of === "label") count -= 1;
    }
    return count;
  }
}

// The texts to come, the one on screen first, and those that were decided, to go back to.
export class Line {
  constructor(decided) {
    this.texts = [];
    this.past = [];
    this.decided = decided;
  }

  get current() {
    return this.texts[0] ?? null;
  }

  have() {
    return this.texts.map(({ text_id, sha256 }) => ({ text_id, sha256 }));
  }

  // Takes the texts that were handed out. `held`: all that are still the visitor's; others are left
  // out, as somebody else may have them, but not the one on screen nor one that was gone back to.
  // Whatever has the id of a text that was handed out, and is another, is left out, too.
  receive(texts, held) {
    const mine = held && new Set(held);
    const names = new Map(texts.map((text) => [text.text_id, nameOf(text)]));
    this.texts = this.texts.filter(
      (text, place) =>
        (names.get(text.text_id) ?? nameOf(text)) === nameOf(text) &&
        (place === 0 || text.kept || !mine || mine.has(text.text_id)),
    );
    const here = new Set(this.texts.map(nameOf));
    for (const text of texts) {
      if (!here.has(nameOf(text)) && !this.decided.has(nameOf(text))) this.texts.push(text);
    }
  }

  // Leaves out all but the next few, and those that were gone back to: the others come again, in a
  // new order and with new suggestions.
  forget(kept) {
    this.texts = this.texts.filter((text, place) => place < kept || text.kept);
  }

  // Leaves the text on screen, which the act decides, and with it those that get the same label.
  advance(act) {
    const text = this.texts.shift();
    if (act.alike) this.texts = this.texts.filter((one) => one.kind !== text.kind);
    this.decided.add(nameOf(text));
    this.past.push({ text, act });
    if (this.past.length > 200) this.past.shift();
  }

  // Gives the texts that stayed what the model says of them now.
  renew(texts) {
    const said = new Map(texts.map((text) => [nameOf(text), text]));
    for (const text of this.texts) {
      const { suggestion, model, offer, cells } = said.get(nameOf(text)) ?? text;
      Object.assign(text, { suggestion, model, offer, cells });
    }
  }

  // Follows what was decided in another tab.
  follow(act) {
    if (act.kind === "undo") this.decided.delete(nameOf(act));
    if (!isDecision(act)) return;
    this.decided.add(nameOf(act));
    const same = (one) => nameOf(one) === nameOf(act) || (act.alike && one.kind === act.of_kind);
    this.texts = this.texts.filter((one) => !same(one));
  }

  // Goes back to the text that was decided last; returns that decision, or null.
  back() {
    const last = this.past.pop() ?? null;
    if (last) this.put(last.text);
    return last;
  }

  // Puts a text on screen before all others.
  put(text) {
    this.decided.delete(nameOf(text));
    this.texts = this.texts.filter((one) => nameOf(one) !== nameOf(text));
    this.texts.unshift({ ...text, kept: true });
  }

  // The server has refused a decision: it does not hold, and the text may come again.
  refuse(act) {
    this.past = this.past.filter((one) => one.act.request_id !== act.request_id);
    if (isDecision(act)) this.decided.delete(nameOf(act));
  }
}

function browserStorage() {
  try {
    return window.localStorage;
  } catch {
    return null; // forbidden; every use of it is tried
  }
}

// What outlives a drawing of the page, for one person in one project.
export class Session {
  constructor(scope) {
    this.outbox = new Outbox(scope, browserStorage());
    this.line = new Line(this.outbox.decided());
    this.moments = [];
    this.last = null; // the decision that is told about
  }

  // Takes, once a page, what was decided before it was loaded, oldest first, so that it can be undone.
  // What waits in the outbox came after that.
  remember(works, { multi, labels }) {
    if (this.remembers) return;
    this.remembers = true;
    const known = new Set(works.map((work) => work.request_id));
    const waiting = [...this.outbox.acts.values()].filter((act) => !known.has(act.request_id));
    const undone = new Set(waiting.map((act) => act.withdraws));
    const saved = works.map((work) => ({ ...work, kind: work.state === "skipped" ? "skip" : "label" }));
    const acts = [...saved, ...waiting.filter(isDecision)].filter((act) => !undone.has(act.request_id));
    const before = acts.map((act) => {
      const { text_id, sha256, text } = act;
      const names = (act.labels ?? []).map((label) => label.name ?? label);
      const had = labels.filter((label) => multi && names.includes(label.name));
      return { text: { text_id, sha256, text, chosen: new Set(had.map((label) => label.id)) }, act };
    });
    this.line.past.unshift(...before);
  }
}

// A pace is that of the last ten minutes, so that a pause is soon forgotten, and of enough labels and
// time that one hard text does not decide it (assumptions).
const PACE_MINUTES = 10;
const FEWEST_OF_PACE = 10;
const SHORTEST_PACE = 60_000; // ms

// Labels an hour over the last minutes, by the moments (ms) at which they were given; null: too few,
// or within too short a time.
export function paceOf(moments, now) {
  const recent = moments.filter((moment) => now - moment < PACE_MINUTES * 60_000);
  if (recent.length < FEWEST_OF_PACE || now - recent[0] < SHORTEST_PACE) return null;
  return Math.round((recent.length - 1) / ((now - recent[0]) / 3_600_000));
}
