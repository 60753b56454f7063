// The timeline: a bar for each period at its place in time, so that a gap in the documents is a gap in the picture.

import { byId, number, shape } from "./dom.js";

const DAY = 86_400_000, STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]; // years between two marks of the axis

// The first moment of a period: "1972" or "2023-04".
const moment = (period) => { const [year, month] = period.split("-").map(Number), made = new Date(0); made.setUTCFullYear(year, (month || 1) - 1, 1); return made.getTime(); };
const next = (period) => { const [year, month] = period.split("-").map(Number), made = new Date(0); made.setUTCFullYear(month ? year : year + 1, month || 0, 1); return made.getTime(); };

export function draw(data) {
  const box = byId("picture").getBoundingClientRect(), width = Math.max(box.width, 280), height = Math.max(box.height, 160), periods = data.periods;
  byId("canvas").hidden = byId("tools").hidden = byId("legend").hidden = byId("crumbs").hidden = byId("leaf").hidden = true;
  byId("timeline").hidden = false;
  if (!periods.length) { byId("timeline").replaceChildren(); return; }
  const begin = moment(periods[0].period), end = Math.max(next(periods.at(-1).period), begin + 30 * DAY), most = Math.max(...periods.map((one) => one.count));
  const side = Math.min(50, width / 10), base = height - 56, at = (time) => side + ((time - begin) / (end - begin)) * (width - 2 * side), tall = (count) => Math.max(3, (count / most) * (base - 56));
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height: "100%", role: "group", "aria-label": "Documents by time; empty time is drawn to scale" });
  const text = (x, y, said, kind) => { const made = shape("text", { x, y, class: kind, "text-anchor": "middle" }); made.textContent = said; return made; };
  svg.append(shape("line", { x1: side, x2: width - side, y1: base, y2: base, class: "main" }));
  for (const [time, name] of marks(begin, end, Math.max(2, Math.floor((width - 2 * side) / 70)))) svg.append(shape("line", { x1: at(time), x2: at(time), y1: base, y2: base + 6, class: "main" }), text(at(time), base + 22, name, "axis"));
  let free = -Infinity;
  for (const one of periods) {
    const [x, to] = [at(moment(one.period)), at(next(one.period))], wide = Math.max(3, to - x - 1), high = tall(one.count), middle = x + wide / 2;
    const name = shape("title");
    name.textContent = `${one.period}: ${number(one.count)} ${one.count === 1 ? "document" : "documents"}`;
    const bar = shape("a", { href: "#timeline/" + one.period, "aria-label": name.textContent }, shape("rect", { x, y: 28, width: wide, height: base - 28, class: "reach" }), shape("rect", { x, y: base - high, width: wide, height: high, rx: Math.min(3, wide / 2), class: "bar-of" }), name);
    if (middle - free > 26) { bar.append(text(middle, base - high - 7, number(one.count), "count")); free = middle; }
    svg.append(bar);
  }
  byId("timeline").replaceChildren(svg);
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
