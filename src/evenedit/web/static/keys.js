// Single-key shortcuts: which key does what. They can be changed and switched off; the choice stays in this browser.

import { kept } from "./queue.js";

const ORIGINAL = {
  1: "1", 2: "2", 3: "3", 4: "4", 5: "5", 6: "6", 7: "7", 8: "8", 9: "9", 0: "0",
  up: "ArrowUp", down: "ArrowDown", left: "ArrowLeft", right: "ArrowRight",
  next: "n", previous: "p", zoom: "z", help: "?",
};
const EFFECT_LEVELS = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", " ": "␣" };
const STORED = "evenedit:keys";

export class Keys {
  constructor() {
    const chosen = JSON.parse(kept.getItem(STORED) || "{}");
    this.on = chosen.on ?? true;
    this.map = { ...ORIGINAL, ...chosen.map };
  }

  action(event) {
    if (!this.on || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return null;
    const found = Object.entries(this.map).find(([, key]) => key === event.key);
    return found ? found[0] : null;
  }

  shown(action) {
    return EFFECT_LEVELS[this.map[action]] ?? this.map[action];
  }

  change(action, key) {
    if (Object.entries(this.map).some(([other, used]) => used === key && other !== action)) return false;
    this.map[action] = key;
    this.#keep();
    return true;
  }

  turn(on) {
    this.on = on;
    this.#keep();
  }

  reset() {
    this.map = { ...ORIGINAL };
    this.#keep();
  }

  #keep() {
    kept.setItem(STORED, JSON.stringify({ on: this.on, map: this.map }));
  }
}
