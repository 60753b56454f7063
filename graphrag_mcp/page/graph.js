// Small pictures as SVG: an entity with its neighbours, and the ways between two.

import { byId, shape, short, visible } from "./dom.js";

export function hide() { byId("graph").replaceChildren(); byId("graph").hidden = true; byId("canvas").hidden = false; byId("tools").hidden = false; byId("legend").hidden = false; }

function draw(nodes, edges, label) {
  const box = byId("picture").getBoundingClientRect(), [width, height] = [Math.max(box.width, 320), Math.max(box.height, 240)];
  const at = (one) => [width / 2 + one.x * (width / 2 - 90), height / 2 + one.y * (height / 2 - 40)];
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height: "100%", role: "group", "aria-label": label });
  for (const [one, other, weight] of edges) {
    const [[x1, y1], [x2, y2]] = [at(one), at(other)], main = one.centre || other.centre;
    svg.append(shape("line", { x1, y1, x2, y2, class: main ? "main" : "", "stroke-width": main ? 0.8 + Math.min(weight || 1, 9) / 3 : 0.6 }));
  }
  const taken = nodes.map((one) => { const [x, y] = at(one); return [x - one.r, y - one.r, x + one.r, y + one.r]; });
  for (const one of nodes) {
    const [x, y] = at(one), title = visible(one.title), label = short(title, 26), half = 3.6 * [...label].length + 2;
    // Above the circle, else below it; where another title stands in both places it is shown on hovering only.
    const free = [y - one.r - 5, y + one.r + 14].find((base) => !taken.some((box) => x - half < box[2] && box[0] < x + half && base - 11 < box[3] && box[1] < base + 3));
    const link = shape("a", { href: "#entity/" + one.n, class: one.centre ? "centre" : "", "aria-label": title }, shape("circle", { cx: x, cy: y, r: one.r }));
    if (free !== undefined) {
      taken.push([x - half, free - 11, x + half, free + 3]);
      const text = shape("text", { x, y: free, "text-anchor": "middle" });
      text.textContent = label;
      link.append(text);
    }
    const name = shape("title");
    name.textContent = title;
    link.append(name);
    svg.append(link);
  }
  byId("graph").replaceChildren(svg);
  byId("graph").hidden = false; byId("canvas").hidden = true; byId("tools").hidden = true; byId("legend").hidden = true;
}

export function neighbourhood(data) {
  // The strongest neighbours on an inner ring, the rest on an outer one, in the order of the list beside.
  const centre = { ...data, x: 0, y: 0, r: 13, centre: true };
  const inner = Math.min(data.relations.length, 12), outer = data.relations.length - inner;
  const nodes = data.relations.map((one, at) => {
    const ring = at < inner, angle = ring ? (2 * Math.PI * at) / inner : (2 * Math.PI * (at - inner + 0.5)) / outer;
    const far = ring ? 0.55 : 0.97;
    return { ...one.other, x: far * Math.sin(angle), y: -far * Math.cos(angle), r: ring ? 9 : 6, weight: one.weight };
  });
  const byNumber = new Map(nodes.map((one) => [one.n, one]));
  const between = (data.edges || []).map(([a, b, weight]) => [byNumber.get(a), byNumber.get(b), weight]).filter(([a, b]) => a && b);
  draw([centre, ...nodes], [...nodes.map((one) => [centre, one, one.weight]), ...between], `${data.title} and its neighbours`);
}

export function ways(data) {
  const nodes = new Map(), edges = [], direct = data.paths.some((steps) => steps.length === 1);
  let row = direct ? 1 : 0; // nothing stands on the line of a direct connection
  const rows = Math.max(2, data.paths.length - 1), height = (at) => ((at % 2 ? -1 : 1) * Math.ceil(at / 2)) / Math.ceil((rows + 1) / 2);
  data.paths.forEach((steps) => {
    const before = nodes.size, y = height(row), chain = [steps[0]?.from, ...steps.map((one) => one.to)].filter(Boolean);
    chain.forEach((one, at) => {
      const share = chain.length > 1 ? at / (chain.length - 1) : 0;
      if (!nodes.has(one.n)) nodes.set(one.n, { ...one, x: 2 * share - 1, y: at % (chain.length - 1 || 1) ? y : 0, r: 10, centre: !at || at === chain.length - 1 });
    });
    row += nodes.size > before + 2 * (before === 0) ? 1 : 0;
    steps.forEach((one) => edges.push([nodes.get(one.from.n), nodes.get(one.to.n), one.weight]));
  });
  draw([...nodes.values()], edges, "the ways between two names");
}
