// The timeline: a bar for each period at its place in time, so that a gap in the documents is a gap in the picture.

import { byId, cut, enlarged, number, shape, visible } from "./dom.js";
import { FONT, TURNED } from "./map.js";

const DAY = 86_400_000, STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]; // years between two marks of the axis

// The first moment of a period: "1972" or "2023-04".
const moment = (period) => { const [year, month] = period.split("-").map(Number), made = new Date(0); made.setUTCFullYear(year, (month || 1) - 1, 1); return made.getTime(); };
const next = (period) => { const [year, month] = period.split("-").map(Number), made = new Date(0); made.setUTCFullYear(month ? year : year + 1, month || 0, 1); return made.getTime(); };

const FLAGS = 60, ROW = 24; // documents of which the titles are written; pixels of a row of them
const ruler = document.createElement("canvas").getContext("2d");

export function draw(data) {
  const box = byId("picture").getBoundingClientRect(), width = Math.max(box.width, 280), height = Math.max(box.height, 160), periods = data.periods;
  byId("canvas").hidden = byId("tools").hidden = byId("legend").hidden = byId("crumbs").hidden = byId("leaf").hidden = true;
  byId("timeline").hidden = false;
  if (!periods.length) { byId("timeline").replaceChildren(); return; }
  const begin = moment(periods[0].period), end = Math.max(next(periods.at(-1).period), begin + 30 * DAY), most = Math.max(...periods.map((one) => one.count));
  const side = Math.min(50, width / 10), base = height - 56, at = (time) => side + ((time - begin) / (end - begin)) * (width - 2 * side);
  const flags = flagged(periods, (period) => (at(moment(period)) + at(next(period))) / 2, width), rows = Math.max(0, ...flags.map((one) => one.row + 1));
  const line = ROW * enlarged(), told = rows > 0 && base - 90 >= rows * line, room = told ? Math.max(40, Math.min(0.3 * base, base - 50 - rows * line, 40 * most)) : 0.8 * base, tall = (count) => Math.max(3, (room / most) * count);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height: "100%", role: "group", "aria-label": "Documents by time; empty time is drawn to scale" });
  const text = (x, y, said, kind) => { const made = shape("text", { x, y, class: kind, "text-anchor": "middle" }); made.textContent = said; return made; };
  svg.append(shape("line", { x1: side, x2: width - side, y1: base, y2: base, class: "main" }));
  for (const [time, name] of marks(begin, end, Math.max(2, Math.floor((width - 2 * side) / 70)))) svg.append(shape("line", { x1: at(time), x2: at(time), y1: base, y2: base + 6, class: "main" }), text(at(time), base + 22, name, "axis"));
  const gap = told ? Math.min(3 * line, (base - room - 40) / rows) : 0; // the titles take the height that the bars leave
  for (const one of told ? flags : []) {
    const y = base - room - 12 - gap * one.row, title = text(one.x, y, one.title, "flag");
    title.setAttribute("text-anchor", one.anchor);
    if (one.turned) title.setAttribute("direction", "rtl");
    svg.append(shape("line", { x1: one.stem, x2: one.stem, y1: y + 6, y2: base - tall(one.count) - 3, class: "stem" }));
    one.made = shape("a", { href: "#document/" + one.n, "aria-label": `${one.period}: ${one.title}` }, title);
  }
  const counted = new Map(); // the bars that have room for their count, the tallest first
  for (const one of told ? [] : [...periods].sort((a, b) => b.count - a.count)) {
    const middle = (at(moment(one.period)) + at(next(one.period))) / 2;
    if ([...counted.values()].every((other) => Math.abs(other - middle) > 26)) counted.set(one, middle);
  }
  for (const one of periods) {
    const [from, to] = [at(moment(one.period)), at(next(one.period))], room_ = to - from - 1, wide = Math.max(3, Math.min(0.7 * room_, 44)), high = tall(one.count), middle = (from + to) / 2, x = middle - wide / 2;
    const name = shape("title");
    name.textContent = `${one.period}: ${number(one.count)} ${one.count === 1 ? "document" : "documents"}`;
    const bar = shape("a", { href: "#timeline/" + one.period, "aria-label": name.textContent }, shape("rect", { x: from, y: 28, width: Math.max(3, room_), height: base - 28, class: "reach" }), shape("rect", { x, y: base - high, width: wide, height: high, rx: Math.min(3, wide / 2), class: "bar-of" }), name);
    if (counted.has(one)) bar.append(text(middle, base - high - 7, number(one.count), "count"));
    svg.append(bar);
  }
  for (const one of flags) if (one.made) svg.append(one.made);
  byId("timeline").replaceChildren(svg);
}

// Titles of documents above their time, the earliest in the top row; none where there are too many of them.
function flagged(periods, middle, width) {
  const all = periods.flatMap((one) => one.documents.map((doc) => ({ n: doc.n, period: one.period, count: one.count })));
  cut(periods.flatMap((one) => one.documents.map((doc) => visible(doc.title))), 44).forEach((title, at) => { all[at].title = title; });
  if (all.length > FLAGS || periods.some((one) => one.more)) return [];
  const ends = []; // by row, from below: what is taken, from right to left
  ruler.font = `${12.8 * enlarged()}px ${FONT}`;
  for (const one of all.reverse()) {
    const wide = ruler.measureText(one.title).width + 16, stem = middle(one.period), left = stem + wide > width - 6;
    const [from, to] = left ? [stem - wide, stem] : [stem, stem + wide];
    if (from < 0) return [];
    let row = ends.findIndex((taken) => taken.every(([a, b]) => to < a || b < from));
    if (row < 0) row = ends.push([]) - 1;
    for (let below = 0; below <= row; below++) ends[below].push(below === row ? [from, to] : [stem - 3, stem + 3]); // no title over a stem where there is room elsewhere
    Object.assign(one, { row, stem, x: stem + (left ? -4 : 4), anchor: left ? "end" : "start", turned: TURNED.test(one.title) });
  }
  return all;
}

// Marks of the axis at whole years or, over less than three years, at months.
function marks(begin, end, room) {
  const found = [], [first, last] = [new Date(begin).getUTCFullYear(), new Date(end).getUTCFullYear()];
  if (end - begin < 3 * 366 * DAY) {
    const months = Math.ceil((end - begin) / (30 * DAY)), step = [1, 2, 3, 6, 12].find((one) => months / one <= room) || 12;
    for (let month = 0; month <= months + 12; month += step) {
      const made = new Date(0); made.setUTCFullYear(first, month, 1);
      if (made.getTime() >= begin && made.getTime() <= end) found.push([made.getTime(), made.toISOString().slice(0, 7)]);
    }
    return found;
  }
  const step = STEPS.find((one) => (last - first) / one <= room) || 1000;
  for (let year = Math.ceil(first / step) * step; year <= last; year += step) if (moment(String(year)) <= end) found.push([moment(String(year)), String(year)]);
  return found;
}
