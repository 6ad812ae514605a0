// <hetlit-explorer>: a picture that moves when its parameters do.
//
// Python computes every frame while the book is built (tools/explorers.py) and leaves
// them in the page, beside a plain figure for those without JavaScript. Here a frame is
// looked up and drawn. There is no mathematics, no framework and no request, so this
// also works on a page that was opened from a disk.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 64, right: 28, top: 26, bottom: 46 };
const PLOT_HEIGHT = 230;
const WIDEST = 720;
const DURATION = 220; // milliseconds from one frame to the next
// By their letters in matplotlib, as hetlit/teaching/looks.py has them.
const MARKER_PATH = {
  o: (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  s: (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  "^": (x, y, r) => `M${x} ${y - 1.2 * r}l${1.2 * r} ${2.1 * r}h${-2.4 * r}Z`,
  D: (x, y, r) => `M${x} ${y - 1.3 * r}l${1.3 * r} ${1.3 * r}l${-1.3 * r} ${1.3 * r}l${-1.3 * r} ${-1.3 * r}Z`,
  v: (x, y, r) => `M${x} ${y + 1.2 * r}l${1.2 * r} ${-2.1 * r}h${-2.4 * r}Z`,
};

// --- Frames ---------------------------------------------------------------------------

// The picture at these positions of the parameters: the template, whose holes are filled
// anew each time.
function pictureAt(data, positions) {
  const frame = positions.reduce((row, at, i) => row * data.parameters[i].texts.length + at, 0);
  data.paths.forEach((path, hole) => {
    const place = path.slice(0, -1).reduce((node, key) => node[key], data.template);
    place[path.at(-1)] = data.values[data.frames[frame][hole]];
  });
  return data.template;
}

// --- From numbers to pixels -----------------------------------------------------------

// A function from values on an axis to pixels between `start` and `end`.
function scale(axis, start, end) {
  const along = axis.log ? Math.log : (value) => value;
  const low = along(axis.low);
  const length = along(axis.high) - low;
  // What is far outside is put a little outside: browsers dislike huge coordinates.
  const share = (value) => Math.min(4, Math.max(-3, (along(value) - low) / length));
  return (value) => start + (end - start) * share(value);
}

// The corners of a mark in pixels, [x, y, x, y, ...]; a band runs there and back.
function corners(mark, x, y) {
  const points = (heights) => mark.x.map((value, i) => [x(value), y(heights[i])]);
  const all = mark.kind === "band"
    ? [...points(mark.low), ...points(mark.high).reverse()]
    : points(mark.y);
  return all.flat();
}

const rounded = (value) => Math.round(100 * value) / 100;

// The path of a mark with these corners, for a plot of this width.
function pathOf(mark, at, width) {
  const pairs = [];
  for (let i = 0; i < at.length; i += 2) pairs.push([rounded(at[i]), rounded(at[i + 1])]);
  if (mark.kind === "points") {
    const marker = MARKER_PATH[mark.marker];
    const radius = mark.small ? 3 : 5;
    const inside = ([x, y]) => x >= -1 && x <= width + 1 && y >= -1 && y <= PLOT_HEIGHT + 1;
    return pairs.filter(inside).map(([x, y]) => marker(x, y, radius)).join("");
  }
  if (!pairs.length) return "";
  return `M${pairs.map((pair) => pair.join(" ")).join("L")}${mark.kind === "band" ? "Z" : ""}`;
}

// --- Elements -------------------------------------------------------------------------

function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Ticks, grid lines and names of both axes.
function drawAxes(panel, width, x, y) {
  const group = svg("g", { class: "explorer-axes", "aria-hidden": "true" });
  let free = -Infinity; // where the next text may start
  panel.x.ticks.forEach((tick, i) => {
    const at = rounded(x(tick));
    const text = panel.x.texts[i];
    group.append(svg("line", { x1: at, x2: at, y1: 0, y2: PLOT_HEIGHT, class: "explorer-grid" }));
    const half = 4 * text.length;
    if (at - half < free) return;
    free = at + half + 6;
    group.append(svg("text", { x: at, y: PLOT_HEIGHT + 18, "text-anchor": "middle" }, text));
  });
  panel.y.ticks.forEach((tick, i) => {
    const at = rounded(y(tick));
    group.append(svg("line", { x1: 0, x2: width, y1: at, y2: at, class: "explorer-grid" }));
    group.append(svg("text", { x: -8, y: at + 4, "text-anchor": "end" }, panel.y.texts[i]));
  });
  const middle = (width + MARGIN.right - MARGIN.left) / 2; // of the drawing: room for words
  group.append(
    svg("path", { d: `M0 0V${PLOT_HEIGHT}H${width}`, class: "explorer-frame" }),
    svg("text", { x: middle, y: PLOT_HEIGHT + 38, "text-anchor": "middle" }, panel.x.label),
    svg("text", { x: 8 - MARGIN.left, y: -11 }, panel.y.label),
  );
  return group;
}

// One sample of every named mark.
function drawLegend(picture) {
  const names = new Map();
  for (const mark of picture.panels.flatMap((panel) => panel.marks)) {
    if (mark.name && !names.has(mark.name)) names.set(mark.name, mark);
  }
  const items = [...names].map(([name, mark]) => {
    const wide = { ...mark, x: [0, 30], y: [7, 7], low: [2, 2], high: [12, 12] };
    if (mark.kind === "points") Object.assign(wide, { x: [15], y: [7] });
    const same = (value) => value;
    const path = svg("path", {
      d: pathOf(wide, corners(wide, same, same), 30),
      class: `explorer-${mark.kind} explorer-${mark.look}`,
    });
    const sample = svg("svg", { width: 30, height: 14, "aria-hidden": "true" }, path);
    return html("li", {}, sample, name);
  });
  return html("ul", { class: "explorer-legend" }, ...items);
}

// --- The element ----------------------------------------------------------------------

class HetlitExplorer extends HTMLElement {
  connectedCallback() {
    if (this.controls) return; // moved in the document, not new
    this.data = JSON.parse(this.querySelector("script").textContent);
    this.setAttribute("role", "group");
    this.setAttribute("aria-labelledby", this.querySelector(".explorer-title").id);
    this.reading = this.querySelector(".explorer-reading");
    this.reading.setAttribute("aria-live", "polite");
    this.controls = this.data.parameters.map((parameter) => this.control(parameter));
    const reset = html("button", { type: "button", class: "explorer-reset" }, "Reset");
    reset.addEventListener("click", () => {
      this.controls.forEach(({ input }, i) => { input.value = this.data.parameters[i].start; });
      this.update();
    });
    const bar = html("div", { class: "explorer-controls" }, ...this.controls.map(({ box }) => box), reset);
    this.stage = this.querySelector(".explorer-stage");
    this.description = this.stage.querySelector("img").alt;
    this.stage.before(bar);
    this.picture = this.current();
    new ResizeObserver(() => this.layOut()).observe(this.stage);
    this.layOut();
  }

  control(parameter) {
    const id = `${this.id}-${parameter.name}`;
    const input = parameter.choice
      ? html("select", { id }, ...parameter.texts.map((text, at) => html("option", { value: at }, text)))
      : html("input", { id, type: "range", min: 0, max: parameter.texts.length - 1, step: 1 });
    input.value = parameter.start;
    // The slider itself says its value to a screen reader; the output shows it.
    const output = html("output", { for: id, "aria-live": "off" }, parameter.texts[parameter.start]);
    // Room for the longest value, so that the slider stays where the finger is.
    output.style.minWidth = `${Math.max(...parameter.texts.map((text) => text.length))}ch`;
    if (!parameter.choice) input.setAttribute("aria-valuetext", output.textContent);
    input.addEventListener("input", () => this.update());
    const box = html("div", {}, html("label", { for: id }, parameter.label), output, input);
    return { box, input, output };
  }

  get positions() {
    return this.controls.map(({ input }) => Number(input.value));
  }

  current() {
    return pictureAt(this.data, this.positions);
  }

  update() {
    this.controls.forEach(({ input, output }, i) => {
      const text = this.data.parameters[i].texts[Number(input.value)];
      output.textContent = text;
      if (input.type === "range") input.setAttribute("aria-valuetext", text);
    });
    this.picture = this.current();
    this.reading.textContent = this.picture.reading;
    this.moveTo(this.goals());
  }

  // Draw everything anew for the width there is.
  layOut() {
    const width = Math.min(WIDEST, this.stage.clientWidth);
    if (!width || width === this.width) return;
    this.width = width;
    this.inner = width - MARGIN.left - MARGIN.right;
    const step = MARGIN.top + PLOT_HEIGHT + MARGIN.bottom;
    const height = step * this.picture.panels.length;
    this.drawing = svg("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.description,
    });
    this.paths = [];
    this.picture.panels.forEach((panel, i) => {
      const [x, y] = this.scales(panel);
      const frame = svg("g", { transform: `translate(${MARGIN.left} ${i * step + MARGIN.top})` });
      frame.append(drawAxes(panel, this.inner, x, y));
      for (const mark of panel.marks) {
        const path = svg("path", { class: `explorer-${mark.kind} explorer-${mark.look}` });
        // An svg inside an svg cuts off what leaves it. Markers may stand on the edge.
        const pane = () => svg("svg", { width: this.inner, height: PLOT_HEIGHT }, path);
        frame.append(mark.kind === "points" ? path : pane());
        this.paths.push(path);
      }
      this.drawing.append(frame);
    });
    this.stage.replaceChildren(drawLegend(this.picture), this.drawing);
    this.jumpTo(this.goals());
  }

  scales(panel) {
    return [scale(panel.x, 0, this.inner), scale(panel.y, PLOT_HEIGHT, 0)];
  }

  // Where the corners of all marks belong now.
  goals() {
    return this.picture.panels.flatMap((panel) => {
      const [x, y] = this.scales(panel);
      return panel.marks.map((mark) => corners(mark, x, y));
    });
  }

  show(places) {
    this.places = places;
    const marks = this.picture.panels.flatMap((panel) => panel.marks);
    marks.forEach((mark, i) => this.paths[i].setAttribute("d", pathOf(mark, places[i], this.inner)));
  }

  jumpTo(goals) {
    cancelAnimationFrame(this.moving);
    this.removeAttribute("data-moving");
    this.show(goals);
  }

  moveTo(goals) {
    cancelAnimationFrame(this.moving);
    const from = this.places;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still || document.hidden) {
      this.jumpTo(goals);
      return;
    }
    this.setAttribute("data-moving", "");
    const begin = performance.now();
    const step = (now) => {
      const part = Math.min(1, Math.max(0, (now - begin) / DURATION));
      const eased = part * (2 - part);
      // A mark with another number of points has no way between: it jumps.
      const between = (goal, i) => (from[i].length === goal.length && part < 1
        ? goal.map((value, j) => from[i][j] + eased * (value - from[i][j]))
        : goal);
      this.show(goals.map(between));
      if (part < 1) this.moving = requestAnimationFrame(step);
      else this.removeAttribute("data-moving");
    };
    this.moving = requestAnimationFrame(step);
  }
}

customElements.define("hetlit-explorer", HetlitExplorer);
