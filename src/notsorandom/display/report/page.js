"use strict";

// Each kind of section has a function that draws it from its data; nothing is fetched.
const colours = ["--blue", "--gold", "--red", "--green", "--violet"];

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(name, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// A number to the digits that a step between two of its kind has.
function short(value, step = Math.abs(value) / 100) {
  if (value === 0) return "0";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return value.toLocaleString("en");
  const digits = -Math.floor(Math.log10(step) + 1e-9); // negative for steps of tens and more
  const power = Math.floor(Math.log10(Math.abs(value)));
  if (power < -3 || power > 5) return value.toExponential(Math.max(0, digits + power)).replace("e+", "e");
  return String(Number(value.toFixed(Math.max(0, digits))));
}

// Colours of numbers from 0 to 255: dark to bright, and blue over white to red.
function between(stops, share) {
  const place = share * (stops.length - 1);
  const first = Math.min(Math.floor(place), stops.length - 2);
  return stops[first].map((value, k) => value + (place - first) * (stops[first + 1][k] - value));
}
const bright = [[0, 0, 4], [59, 15, 112], [140, 41, 129], [222, 73, 104], [254, 159, 109], [252, 253, 191]];
const signed = [[33, 72, 120], [106, 172, 208], [247, 247, 247], [239, 138, 98], [152, 22, 40]];

function paint(canvas, values, width, height, stops, hidden = null) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let i = 0; i < values.length; i += 1) {
    const [red, green, blue] = between(stops, values[i] / 255);
    image.data.set([red, green, blue, hidden && hidden[i] ? 0 : 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

const kinds = {
  facts(section, data) {
    const list = make("dl", { class: "facts" });
    for (const [name, value] of data.facts) {
      list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    }
    section.append(list);
  },

  game(section, data) {
    const panels = make("div", { class: "panels" });
    const canvases = ["samples, by dual weight", "potential and frequencies", "decision function"].map((title) => {
      const canvas = make("canvas", { role: "img", "aria-label": title });
      panels.append(make("figure", {}, canvas, make("figcaption", {}, title)));
      return canvas;
    });
    const slider = make("input", { type: "range", min: 0, max: data.frames.length - 1, value: 0, "aria-label": "round" });
    const words = make("output");
    const button = make("button", { type: "button" }, "play");
    section.append(make("div", { class: "slider" }, button, slider, words), panels);

    const side = 480;
    const points = data.points.map((value) => (value / 255) * side);
    function dot(context, x, y, radius) {
      context.beginPath();
      context.arc(x, side - y, radius, 0, 2 * Math.PI);
      context.fill();
    }
    function show() {
      const frame = data.frames[Number(slider.value)];
      words.textContent = `round ${frame.round}: ${frame.count} ${frame.count === 1 ? "frequency" : "frequencies"}`;
      slider.setAttribute("aria-valuetext", words.textContent);
      const [samples, potential, decision] = canvases;
      samples.width = samples.height = side;
      const context = samples.getContext("2d");
      const style = getComputedStyle(document.documentElement);
      const pair = [style.getPropertyValue("--blue"), style.getPropertyValue("--red")];
      const dual = bytes(frame.dual);
      for (let i = 0; i < dual.length; i += 1) {
        const share = (dual[i] / 255) ** 2;
        context.globalAlpha = 0.15 + 0.85 * share;
        context.fillStyle = pair[data.labels[i]];
        dot(context, points[2 * i], points[2 * i + 1], 1.2 + 2.4 * share);
      }
      const small = document.createElement("canvas");
      paint(small, bytes(frame.potential), data.side, data.side, bright);
      potential.width = potential.height = side;
      const over = potential.getContext("2d");
      over.drawImage(small, 0, 0, side, side);
      over.fillStyle = "#2ee6d6";
      for (let k = 0; k < frame.count; k += 1) {
        const [x, y] = data.frequencies[k].map((value) => value / data.reach / 2);
        dot(over, (0.5 + x) * side, (0.5 + y) * side, 2.5);
        dot(over, (0.5 - x) * side, (0.5 - y) * side, 2.5);
      }
      paint(small, bytes(frame.decision), data.side, data.side, signed);
      decision.width = decision.height = side;
      decision.getContext("2d").drawImage(small, 0, 0, side, side);
    }
    let timer = null;
    function stop() {
      clearInterval(timer);
      timer = null;
      button.textContent = "play";
    }
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (Number(slider.value) === data.frames.length - 1) slider.value = 0;
      button.textContent = "pause";
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) === data.frames.length - 1) stop();
      }, 500);
      return show();
    });
    slider.addEventListener("input", show);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
  },

  charts(section, data) {
    const panels = make("div", { class: "panels charts" });
    data.charts.forEach((chart) => panels.append(plot(chart)));
    section.append(panels);
  },

  images(section, data) {
    const panels = make("div", { class: "panels", style: `grid-template-columns: repeat(auto-fill, minmax(min(${data.width_rem}rem, 45%), 1fr))` });
    for (const image of data.images) {
      const canvas = make("canvas", { class: data.smooth ? "" : "pixels", role: "img", "aria-label": image.title });
      paint(canvas, bytes(image.values), data.width, data.height, signed, image.hidden ? bytes(image.hidden) : null);
      panels.append(make("figure", {}, canvas, make("figcaption", {}, image.title)));
    }
    section.append(panels);
  },

  matrix(section, data) {
    const largest = Math.max(1, ...data.counts.flat());
    const table = make("table", { class: "matrix" });
    table.append(make("tr", {}, make("th", {}, "true \\ predicted"), ...data.names.map((name) => make("th", {}, name))));
    data.counts.forEach((row, i) => {
      const cells = row.map((count, j) => {
        const colour = i === j ? "--blue" : "--red";
        const share = Math.round(60 * (count / largest) ** (i === j ? 1 : 0.5));
        return make("td", { style: `background: color-mix(in srgb, var(${colour}) ${share}%, var(--panel))` }, String(count));
      });
      table.append(make("tr", {}, make("th", {}, data.names[i]), ...cells));
    });
    section.append(make("div", { class: "wide" }, table));
  },

  table(section, data) {
    if (data.headers.length) {
      const table = make("table");
      const words = data.headers.map((_, k) => data.rows.every((row) => /[a-z]/i.test(row[k])));
      table.append(make("tr", {}, ...data.headers.map((header, k) => make("th", words[k] ? { class: "words" } : {}, header))));
      for (const row of data.rows) {
        table.append(make("tr", {}, ...row.map((cell) => tableCell(cell))));
      }
      section.append(make("div", { class: "wide" }, table));
    }
    if (data.notes.length) section.append(make("ul", {}, ...data.notes.map((note) => make("li", {}, note))));
  },
};

// A cell may have its winner in asterisks and the paper's figure in brackets.
function tableCell(text) {
  const [, best, rest] = /^\*\*(.*?)\*\*(.*)$/.exec(text) || [null, null, text];
  const [, own, theirs] = /^([\d.]*)( \([\d.]+\))$/.exec(rest) || [null, rest, ""];
  const words = /[a-z]/i.test(text);
  const cell = make("td", best ? { class: "best" } : words ? { class: "words" } : {}, (best || "") + own);
  if (theirs) cell.append(make("span", { class: "theirs" }, theirs));
  return cell;
}

function plot(chart) {
  const [width, height, left, right, top, bottom] = [440, 280, 64, 14, 12, 48];
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chart.title });
  const xs = chart.series.flatMap((series) => series.x).filter(Number.isFinite);
  const ys = chart.series
    .flatMap(({ y, spread }) => y.flatMap((value, i) => (spread && spread[i] ? [value - spread[i], value + spread[i]] : [value])))
    .filter((value) => Number.isFinite(value) && (!chart.log_y || value > 0));
  const scale = (values, log, from, to, floor) => {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (floor !== undefined && floor !== null) low = Math.min(low, floor);
    if (low === high) [low, high] = log ? [low / 2, high * 2] : low === floor ? [low, low + 1] : [low - 1, high + 1];
    const move = log ? Math.log : (value) => value;
    return { low, high, log, at: (value) => from + ((move(value) - move(low)) / (move(high) - move(low))) * (to - from) };
  };
  const x = scale(xs, chart.log_x, left, width - right);
  const y = scale(ys, chart.log_y, height - bottom, top, chart.floor);
  const ticks = ({ low, high, log }, least = 0) => {
    const found = [];
    if (log && high / low >= 10) {
      const step = Math.max(1, Math.round(Math.log10(high / low) / 4));
      for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power += step) found.push([10 ** power, 10 ** power]);
      return found;
    }
    const unit = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = Math.max(least, [1, 2, 5, 10].map((factor) => factor * unit).find((size) => (high - low) / size <= 6));
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push([k * step, step]);
    return found;
  };
  for (const [value, step] of ticks(y)) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y.at(value), y2: y.at(value) }));
    svg.append(draw("text", { x: left - 6, y: y.at(value) + 4, "text-anchor": "end" }, short(value, step)));
  }
  let end = -Infinity; // of the last label: the next must not run into it
  for (const [value, step] of chart.ticks ? chart.ticks.map((tick) => [tick, 1]) : ticks(x, chart.x_label === "round" ? 1 : 0)) {
    const words = short(value, step);
    svg.append(draw("line", { class: "grid", x1: x.at(value), x2: x.at(value), y1: top, y2: height - bottom }));
    if (x.at(value) - 4 * words.length < end) continue;
    svg.append(draw("text", { x: x.at(value), y: height - bottom + 17, "text-anchor": "middle" }, words));
    end = x.at(value) + 4 * words.length + 4;
  }
  svg.append(draw("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, chart.x_label));
  svg.append(draw("text", { x: 12, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + height - bottom) / 2})` }, chart.y_label));
  const legend = make("div", { class: "legend" });
  chart.series.forEach((series, number) => {
    const colour = `var(${colours[number % colours.length]})`;
    const seen = series.x.map((value, i) => [value, series.y[i], i]).filter(([, value]) => Number.isFinite(value) && (!chart.log_y || value > 0));
    if (chart.stems) {
      for (const [place, value] of seen) {
        svg.append(draw("line", { x1: x.at(place), x2: x.at(place), y1: height - bottom, y2: y.at(value), stroke: colour, "stroke-opacity": 0.6 }));
        svg.append(draw("circle", { cx: x.at(place), cy: y.at(value), r: 2.2, fill: colour }));
      }
    } else {
      const path = seen.map(([place, value]) => `${x.at(place)},${y.at(value)}`).join(" ");
      svg.append(draw("polyline", { points: path, fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": series.dashed ? "6 4" : "none" }));
      for (const [place, value, i] of series.marked || seen.length === 1 ? seen : []) {
        const spread = series.spread ? series.spread[i] : 0;
        if (spread) svg.append(draw("line", { x1: x.at(place), x2: x.at(place), y1: y.at(value - spread), y2: y.at(value + spread), stroke: colour }));
        const mark = draw("circle", { cx: x.at(place), cy: y.at(value), r: 3, fill: colour });
        mark.append(draw("title", {}, `${series.name}: ${short(value)} at ${short(place)}`));
        svg.append(mark);
      }
    }
    if (chart.series.length > 1) legend.append(make("span", { style: `--colour: ${colour}; --dash: ${series.dashed ? "dashed" : "solid"}` }, series.name));
  });
  return make("figure", {}, svg, legend, make("figcaption", {}, chart.title));
}

for (const data of JSON.parse(document.getElementById("sections").textContent)) {
  const section = make("section", { "data-kind": data.kind }, make("h2", {}, data.title));
  if (data.note) section.append(make("p", { class: "note" }, data.note));
  kinds[data.kind](section, data);
  document.getElementById("page").append(section);
}
