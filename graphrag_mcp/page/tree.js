// The list beside the map: the same communities as a tree that the keyboard and a screen reader walk (WAI-ARIA tree).

import { element, number, short, visible } from "./dom.js";
import * as views from "./views.js";

export class Tree {
  constructor(map, open) { this.map = map; this.open = open; this.opened = new Set(); }

  render() {
    const roots = this.map.roots();
    this.root = element("ul", { role: "tree", "aria-label": "Topics", onkeydown: (event) => this.key(event) }, this.ordered(roots).map((one) => this.item(one, 1)));
    const first = this.root.querySelector("[role=treeitem]");
    if (first) first.tabIndex = 0;
    return this.root;
  }

  ordered(many) { return [...many].sort((a, b) => (this.map.hits.get(b.n) || 0) - (this.map.hits.get(a.n) || 0) || b.size - a.size || a.n - b.n); }

  item(one, level) {
    const made = element("li", { role: "treeitem", tabindex: "-1", "aria-level": level, "data-n": one.n, class: this.map.hits.get(one.n) ? "hit" : "",
      "aria-expanded": one.children ? String(this.opened.has(one.n)) : null, "aria-label": `${visible(short(one.title, 90))} ${views.counted(one.size, "text unit")}` },
    element("div", { class: "row", onclick: (event) => { if (event.target.className === "twisty") this.toggle(made, one, level); else this.open("community/" + one.n); } },
      element("span", { class: "twisty", "aria-hidden": "true" }, one.children ? (this.opened.has(one.n) ? "▾" : "▸") : ""),
      element("span", { class: "name", dir: "auto" }, visible(short(one.title, 90))), " ", element("span", { class: "size" }, number(one.size))));
    made.community = one;
    if (this.opened.has(one.n)) made.append(this.group(one, level));
    return made;
  }

  group(one, level) { return element("ul", { role: "group" }, this.ordered(this.map.inside.get(one.n) || []).map((child) => this.item(child, level + 1))); }

  async toggle(item, one, level) {
    if (!one.children) return;
    if (!this.opened.has(one.n) && !this.map.inside.get(one.n)) await this.map.fetch(one.n);
    this.opened.has(one.n) ? this.opened.delete(one.n) : this.opened.add(one.n);
    const fresh = this.item(one, level);
    item.replaceWith(fresh); this.focus(fresh);
  }

  focus(item) {
    if (!item) return;
    this.root.querySelectorAll("[tabindex='0']").forEach((other) => { other.tabIndex = -1; });
    item.tabIndex = 0; item.focus();
  }

  key(event) {
    const item = event.target.closest("[role=treeitem]"), items = [...this.root.querySelectorAll("[role=treeitem]")], at = items.indexOf(item);
    if (at < 0) return;
    const one = item.community, level = Number(item.getAttribute("aria-level")), opened = this.opened.has(one.n);
    const keys = {
      ArrowDown: () => this.focus(items[at + 1]), ArrowUp: () => this.focus(items[at - 1]), Home: () => this.focus(items[0]), End: () => this.focus(items.at(-1)),
      ArrowRight: () => (opened ? this.focus(items[at + 1]) : this.toggle(item, one, level)),
      ArrowLeft: () => (opened ? this.toggle(item, one, level) : this.focus(item.parentElement.closest("[role=treeitem]"))),
      Enter: () => this.open("community/" + one.n), " ": () => this.open("community/" + one.n),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  }
}
