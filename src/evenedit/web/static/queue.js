// Answers on their way: kept in this browser until the server says that they are on its disk, sent one by one in the
// order they were given, tried again while offline. One storage key per answer, so that two tabs cannot undo each other.

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 20000;

// Some browsers forbid storage; then answers wait in memory, and the page warns before it is left.
class Memory {
  #kept = new Map();
  keys = () => [...this.#kept.keys()];
  getItem = (key) => this.#kept.get(key) ?? null;
  setItem = (key, value) => this.#kept.set(key, String(value));
  removeItem = (key) => this.#kept.delete(key);
}

function storage() {
  try {
    localStorage.setItem("evenedit:probe", "1");
    localStorage.removeItem("evenedit:probe");
  } catch {
    return new Memory();
  }
  return {
    keys: () => Object.keys(localStorage),
    getItem: (key) => localStorage.getItem(key),
    setItem: (key, value) => localStorage.setItem(key, value),
    removeItem: (key) => localStorage.removeItem(key),
  };
}

export const kept = storage();

export class Queue {
  // visit: whose answers; from: the highest sequence the server has; onState(state, count, message); onNewer(answer)
  constructor(visit, from, onState, onNewer) {
    this.prefix = `evenedit:${visit}:`;
    this.onState = onState;
    this.onNewer = onNewer;
    this.running = false;
    this.wait = FIRST_WAIT;
    const known = Math.max(from, this.#counted(), ...this.waiting().map((answer) => answer.sequence));
    kept.setItem(this.prefix + "sequence", known);
    addEventListener("online", () => this.send());
    addEventListener("offline", () => this.onState("offline", this.waiting().length));
  }

  #counted() {
    return Number(kept.getItem(this.prefix + "sequence")) || 0;
  }

  waiting() {
    return kept
      .keys()
      .filter((key) => key.startsWith(this.prefix + "answer:"))
      .map((key) => JSON.parse(kept.getItem(key)))
      .sort((one, other) => one.sequence - other.sequence);
  }

  add(answer) {
    const sequence = this.#counted() + 1;
    kept.setItem(this.prefix + "sequence", sequence);
    kept.setItem(this.prefix + "answer:" + sequence, JSON.stringify({ ...answer, sequence }));
    this.send();
  }

  forget(answer) {
    kept.removeItem(this.prefix + "answer:" + answer.sequence);
  }

  // Sends all that waits; resolves to whether nothing is left.
  async send() {
    if (this.running) return this.running;
    clearTimeout(this.timer);
    this.running = this.#sendAll();
    const empty = await this.running;
    this.running = false;
    return empty;
  }

  async #sendAll() {
    for (let answer = this.waiting()[0]; answer; answer = this.waiting()[0]) {
      this.onState("saving", this.waiting().length);
      let reply;
      try {
        reply = await fetch("/survey/answers", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(answer),
          keepalive: true,
        });
      } catch {
        return this.#later();
      }
      if (reply.status >= 500 || reply.status === 429) return this.#later();
      if (!reply.ok) {
        const body = await reply.json().catch(() => ({ error: { message: "" } }));
        this.onState("failed", this.waiting().length, body.error.message);
        return false;
      }
      const { stored } = await reply.json();
      this.forget(answer);
      this.wait = FIRST_WAIT;
      if (stored > answer.sequence) {
        kept.setItem(this.prefix + "sequence", Math.max(stored, this.#counted()));
        this.onNewer(answer);
      }
    }
    this.onState("saved", 0);
    return true;
  }

  #later() {
    this.onState("offline", this.waiting().length);
    this.timer = setTimeout(() => this.send(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    return false;
  }
}
