// The page of a search report. Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// Texts of the search become text nodes, never markup; Plotly gets numbers and names of metrics only.
"use strict";
(() => {
  const CHUNK = 128, ROWS = 50, POLL_MS = 2000;
  // Of the baselines, the network itself first.
  const SYMBOLS = ["star", "diamond", "square", "cross", "triangle-up", "pentagon", "hexagon", "x"];
  const DASHES = ["dash", "dot", "dashdot", "longdash", "longdashdot"];
  const live = document.documentElement.dataset.mode === "live";
  const byId = (id) => document.getElementById(id);
  let search = null;            // the summary
  let positions = new Map();    // of identifiers
  let chosen = null;            // an identifier
  let childrenOf = new Map();
  let frontOf = new Set();
  let order = {key: "id", descending: false}, page = 0;
  const chunks = new Map();

  // ---- Elements

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") element.addEventListener("click", value);
      else if (name === "text") element.textContent = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function clear(element, ...children) {
    element.replaceChildren(...children);
    return element;
  }

  const svg = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  function fail(message) {
    byId("problem").textContent = message;
    byId("problem").hidden = false;
  }

  // ---- Numbers

  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  function format(value) {
    if (!isNumber(value)) return "";
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e6) return value.toLocaleString("en").replaceAll(",", "\u202f");
    if (size >= 1e6) {
      const unit = [[1e12, "T"], [1e9, "G"], [1e6, "M"]].find(([scale]) => size >= scale) ?? [1, ""];
      return `${(value / unit[0]).toPrecision(4)}\u202f${unit[1]}`;
    }
    return size !== 0 && size < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(5)));
  }

  function formatSeconds(seconds) {
    if (!isNumber(seconds)) return "";
    if (seconds < 1) return `${Number((seconds * 1000).toPrecision(3))} ms`;
    if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
    if (seconds < 7200) return `${(seconds / 60).toFixed(0)} min`;
    return `${(seconds / 3600).toFixed(1)} h`;
  }

  const column = (name) => search.metrics[name] ?? [];
  const isMaximized = (name) => search.maximized.includes(name);
  const isBetter = (name, one, other) => (isMaximized(name) ? one > other : one < other);

  // Positions of the candidates that no other dominates, in the order of x.
  function findFront(xName, yName) {
    const xs = column(xName), ys = column(yName);
    const rank = [...xs.keys()].filter((i) => isNumber(xs[i]) && isNumber(ys[i]));
    const sign = (name) => (isMaximized(name) ? -1 : 1);
    rank.sort((a, b) => sign(xName) * (xs[a] - xs[b]) || sign(yName) * (ys[a] - ys[b]) || a - b);
    const front = [];
    for (const i of rank)
      if (!front.length || isBetter(yName, ys[i], ys[front.at(-1)])) front.push(i);
    return front;
  }

  // ---- Themes and plots

  const preferred = matchMedia("(prefers-color-scheme: dark)");
  let theme = null;
  try { theme = localStorage.getItem("kas-theme"); } catch {}

  function applyTheme() {
    const dark = theme ? theme === "dark" : preferred.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    byId("theme").textContent = dark ? "light" : "dark";
    if (search) drawCharts();
    if (chosen !== null) show(chosen, false);
  }

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function axis(title, more = {}) {
    return {title: {text: title, standoff: 8}, gridcolor: color("grid"), zeroline: false, linecolor: color("line"),
      automargin: true, exponentformat: "SI", nticks: 8, ...more};
  }

  function plot(id, traces, xaxis, yaxis, more = {}) {
    const layout = {paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: {color: color("text"), size: 12},
      margin: {l: 60, r: 16, t: 10, b: 44}, hovermode: "closest", dragmode: "zoom", showlegend: traces.length > 1,
      modebar: {bgcolor: "rgba(0,0,0,0)", color: color("pale"), activecolor: color("accent")},
      legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0}, hoverlabel: {font: {size: 12}},
      uirevision: `${id} ${xaxis.title.text} ${yaxis.title.text} ${xaxis.type}`, xaxis, yaxis, ...more};
    const element = typeof id === "string" ? byId(id) : id;
    return Plotly.react(element, traces, layout, {displaylogo: false, responsive: true,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]});
  }

  function points(name, members, xs, ys, xName, yName, marker, more = {}) {
    return {type: "scatter", mode: "markers", name, x: members.map((i) => xs[i]), y: members.map((i) => ys[i]),
      customdata: members.map((i) => search.ids[i]), text: members.map(describe), marker,
      hovertemplate: `candidate %{customdata}<br>${xName}: %{x:.5~g}<br>${yName}: %{y:.5~g}%{text}<extra></extra>`, ...more};
  }

  const plain = (name) => name.replace(/[<>&]/g, " ");

  // Lines of a hover text beside the coordinates. Plotly would take some characters for markup.
  function describe(i) {
    const lines = [], epochs = column("epochs")[i], formula = search.formulas[i];
    if (isNumber(epochs)) lines.push(`epochs: ${epochs}`);
    lines.push(...search.warnings[i]);
    if (formula) lines.push(plain(formula.length > 90 ? `${formula.slice(0, 90)}…` : formula));
    return lines.map((line) => `<br>${line}`).join("");
  }

  function axisTitle(name) {
    const notes = [search.units[name], isMaximized(name) ? "more is better" : ""].filter(Boolean);
    // Phones have no room for one line.
    const rest = notes.length ? `(${notes.join(innerWidth < 600 ? ",<br>" : ", ")})` : "";
    return `${plain(name)}${name.length + rest.length > 30 ? "<br>" : " "}${rest}`.trim();
  }

  // Why there is nothing to see.
  function explain(...names) {
    const missing = names.filter((name) => !column(name).some(isNumber));
    if (!search.ids.length) return "there are no candidates yet";
    const failed = [...search.states].filter((state) => state === "f").length;
    const reason = search.reasons.length ? `, most of them: ${search.reasons[0][0].slice(0, 60)}` : "";
    if (failed === search.ids.length) return `all ${failed} candidates failed${reason}`;
    if (missing.length) return `no candidate has ${missing.join(" and ")} yet`;
    return `no candidate has both ${names.join(" and ")} yet`;
  }

  const note = (text) => ({annotations: [{text: plain(text), xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false,
    font: {size: 14, color: color("text")}}]});

  const plotted = () => Object.keys(search.metrics).filter((name) => !search.mixed.includes(name));

  // What candidates are compared with: a point, or a line where only one of its coordinates is known.
  function drawBaseline({name, metrics}, index, xName, yName, xs, ys) {
    const x = metrics[xName], y = metrics[yName], label = plain(name);
    const marker = {symbol: SYMBOLS[index % SYMBOLS.length], size: index ? 10 : 13, color: color("accent")};
    const rest = {type: "scatter", name: label, line: {color: color("accent"), width: 1.5, dash: DASHES[index % DASHES.length]}};
    if (isNumber(x) && isNumber(y))
      return [{...rest, mode: "markers", x: [x], y: [y], marker,
        hovertemplate: `${label}<br>${plain(xName)}: %{x:.5~g}<br>${plain(yName)}: %{y:.5~g}<extra></extra>`}];
    const ends = (values) => {
      const known = values.filter(isNumber);
      return [known.reduce((a, b) => Math.min(a, b), known[0]), known.reduce((a, b) => Math.max(a, b), known[0])];
    };
    const text = (metric, value) => `${label}<br>${plain(metric)}: ${format(value)}<extra></extra>`;
    if (isNumber(y) && xs.some(isNumber)) return [{...rest, mode: "lines", x: ends(xs), y: [y, y], hovertemplate: text(yName, y)}];
    if (isNumber(x) && ys.some(isNumber)) return [{...rest, mode: "lines", x: [x, x], y: ends(ys), hovertemplate: text(xName, x)}];
    return [];
  }

  const drawBaselines = (...place) => search.baselines.flatMap((baseline, index) => drawBaseline(baseline, index, ...place));

  // A ring around the chosen point.
  function getRing() {
    const i = positions.get(chosen), x = column(byId("front-x").value)[i], y = column(byId("front-y").value)[i];
    if (!isNumber(x) || !isNumber(y)) return [];
    return [{type: "circle", xsizemode: "pixel", ysizemode: "pixel", xanchor: x, yanchor: y, x0: -9, x1: 9, y0: -9, y1: 9,
      line: {color: color("accent"), width: 3}}];
  }

  // At most `most` points that are not on the front.
  function drawFront(most = Infinity) {
    const xName = byId("front-x").value, yName = byId("front-y").value;
    const xs = column(xName), ys = column(yName);
    const front = findFront(xName, yName), inFront = new Set(front);
    frontOf = new Set(front.map((i) => search.ids[i]));
    const others = [...xs.keys()].filter((i) => isNumber(xs[i]) && isNumber(ys[i]) && !inFront.has(i));
    // Points in one place are one element: what is drawn is the same.
    const seen = new Set(front.map((i) => `${xs[i]} ${ys[i]}`)), drawn = others.filter((i) => {
      const place = `${xs[i]} ${ys[i]}`;
      return !seen.has(place) && seen.add(place);
    }).slice(0, most);
    const [x, y] = [plain(xName), plain(yName)];
    const traces = [
      points("others", drawn, xs, ys, x, y, {color: color("pale"), size: 5, opacity: 0.6}),
      points("front", front, xs, ys, x, y, {color: color("strong"), size: 9}, {mode: "lines+markers",
        line: {color: color("strong"), width: 1, shape: isMaximized(xName) ? "vh" : "hv"}}),
      ...drawBaselines(xName, yName, xs, ys),
    ];
    byId("front-hint").textContent = `${front.length} on the front, ${others.length} others`;
    return plot("front", traces, axis(axisTitle(xName), {type: byId("front-log").checked ? "log" : "linear"}),
      axis(axisTitle(yName)), {shapes: getRing(), ...(front.length ? {} : note(explain(xName, yName)))});
  }

  function drawHistory() {
    const yName = byId("history-y").value, overTime = byId("history-x").value === "time";
    const ys = column(yName), xs = overTime ? search.times : search.ids.map((_, i) => i + 1);
    const members = [...ys.keys()].filter((i) => isNumber(ys[i]));
    const best = [];
    for (const i of members)
      if (!best.length || isBetter(yName, ys[i], ys[best.at(-1)])) best.push(i);
    const line = {x: best.map((i) => xs[i]), y: best.map((i) => ys[i])};
    if (best.length) {
      line.x.push(xs.at(-1));
      line.y.push(line.y.at(-1));
    }
    // So many that the shape stays, and each that was the best.
    const step = Math.ceil(members.length / 3000), kept = new Set(best);
    const some = members.filter((i, n) => n % step === 0 || kept.has(i));
    const xName = overTime ? "seconds" : "candidates";
    return plot("history", [
      points(step > 1 ? `every ${step}th candidate` : "candidates", some, xs, ys, xName, plain(yName),
        {color: color("pale"), size: 4, opacity: 0.6}),
      {type: "scatter", mode: "lines", name: "best so far", ...line, hoverinfo: "skip",
        line: {color: color("accent"), width: 2, shape: "hv"}},
      ...drawBaselines(xName, yName, some.map((i) => xs[i]), ys),
    ], axis(overTime ? "time (seconds)" : "candidates (number)"), axis(axisTitle(yName)), members.length ? {} : note(explain(yName)));
  }

  function drawCharts() {
    if (!Object.keys(search.metrics).length) {
      for (const id of ["front", "history"]) plot(id, [], axis(""), axis(""), note(explain("a metric")));
      return;
    }
    // The front is what is looked for first, then how it came about.
    const many = search.ids.length > 2000;
    drawFront(many ? 1000 : Infinity);
    requestAnimationFrame(() => setTimeout(() => {
      drawHistory();
      if (many) requestAnimationFrame(() => setTimeout(drawFront));
    }));
  }

  function listenTo(id) {
    byId(id).on("plotly_click", (event) => {
      const id = event.points[0]?.customdata;
      if (id !== undefined) show(id);
    });
  }

  // ---- Overview, failures, settings

  function drawTiles() {
    const count = (state) => [...search.states].filter((one) => one === state).length;
    const last = search.times.length ? search.times.at(-1) + (search.seconds.at(-1) ?? 0) : 0;
    const tiles = [["candidates", format(search.ids.length)], ["evaluated", format(count("e"))], ["failed", format(count("f"))],
      ["in flight", format(count("a"))], ["from first to last", formatSeconds(last)]];
    if (last > 0) tiles.push(["candidates per second", format(Number((search.ids.length / last).toPrecision(3)))]);
    for (const name of search.axes) {
      const values = column(name).filter(isNumber);
      const best = values.reduce((one, other) => (isBetter(name, other, one) ? other : one), values[0]);
      const known = search.baselines.filter(({metrics}) => isNumber(metrics[name]));
      if (values.length) tiles.push([`best ${name}`, format(best), ...known.map((one) => `${format(one.metrics[name])} ${one.name}`)]);
    }
    byId("verdict").hidden = !search.verdict;
    byId("verdict").textContent = search.verdict?.text ?? "";
    byId("verdict").className = search.verdict?.better ? "better" : "";
    clear(byId("tiles"), ...tiles.map(([name, value, ...others]) => make("div", {class: "tile"}, make("b", {text: value}),
      make("span", {text: name}), ...others.map((text) => make("span", {class: "other", text})))));
  }

  function drawFailures() {
    byId("failures-card").hidden = !search.reasons.length;
    const most = search.reasons[0]?.[1] ?? 1;
    clear(byId("failures"), ...search.reasons.map(([reason, count], index) => {
      const row = make("tr", {class: "row", tabindex: "0"}, make("td", {class: "number", text: format(count)}),
        make("td", {style: "width: 25%"}, make("span", {class: "bar", style: `width: ${(100 * count) / most}%`})),
        make("td", {class: "text", text: reason}));
      onPress(row, () => {
        byId("filter").value = `reason ${index}`;
        page = 0;
        drawCandidates();
        byId("candidates-heading").scrollIntoView({block: "start"});
      });
      return row;
    }));
  }

  function onPress(element, action) {
    element.addEventListener("click", action);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        action();
      }
    });
  }

  function drawSettings() {
    byId("command").textContent = search.command;
    byId("space").textContent = search.settings.space ?? "";
    const given = search.baselines.filter(({text}) => text);
    clear(byId("baselines"), ...given.flatMap(({name, text}) => [make("h3", {text: `Baseline: ${name}`}), make("pre", {text: text.trim()})]));
    const rows = [...Object.entries(search.settings).filter(([name]) => name !== "space" && name !== "command"),
      ...Object.entries(search.statistics).map(([name, value]) => [name, format(value)])];
    clear(byId("settings"), ...rows.map(([name, value]) =>
      make("tr", {}, make("th", {text: name.replaceAll("_", " ")}), make("td", {class: "text", text: value}))));
  }

  // ---- The table

  function fillChoices(id, choices, value) {
    const before = byId(id).value;
    clear(byId(id), ...choices.map(([value, text]) => make("option", {value, text})));
    const wanted = choices.some(([value]) => value === before) ? before : value;
    if (wanted !== undefined) byId(id).value = wanted;
  }

  function getMembers() {
    const filter = byId("filter").value, find = byId("find").value.trim();
    const tests = {all: () => true, front: (i) => frontOf.has(search.ids[i]), evaluated: (i) => search.states[i] === "e",
      failed: (i) => search.states[i] === "f", asked: (i) => search.states[i] === "a"};
    const reason = filter.startsWith("reason ") ? Number(filter.slice(7)) : null;
    const test = reason !== null ? (i) => search.reason[i] === reason : tests[filter] ?? tests.all;
    const members = search.ids.map((_, i) => i).filter((i) => test(i) && (!find || String(search.ids[i]).startsWith(find)));
    const texts = {failure: getFailure, formula: (i) => search.formulas[i], warnings: (i) => search.warnings[i].join()}[order.key];
    const sign = order.descending ? -1 : 1;
    // What has no value comes last, however it is sorted.
    if (texts) {
      const keys = new Map(members.map((i) => [i, texts(i)]));
      const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      return members.sort((a, b) => !keys.get(a) - !keys.get(b) || sign * compare(keys.get(a), keys.get(b)) || a - b);
    }
    const keys = {id: search.ids, seconds: search.seconds}[order.key] ?? column(order.key);
    return members.sort((a, b) => isNumber(keys[b]) - isNumber(keys[a]) || sign * (keys[a] - keys[b]) || a - b);
  }

  const getFailure = (i) => (search.reason[i] >= 0 ? search.reasons[search.reason[i]][0] : search.states[i] === "a" ? "in flight" : "");

  const makeBadges = (warnings) => warnings.map((name) => make("span", {class: "badge", title: search.warning_texts[name] ?? "", text: name}));

  function drawCandidates() {
    const names = Object.keys(search.metrics), members = getMembers();
    const pages = Math.max(1, Math.ceil(members.length / ROWS));
    page = Math.min(Math.max(page, 0), pages - 1);
    byId("page").textContent = `${page + 1} of ${pages} (${format(members.length)})`;
    byId("previous").disabled = page === 0;
    byId("next").disabled = page === pages - 1;
    const isText = (key) => ["warnings", "failure", "formula"].includes(key);
    const head = make("tr", {}, ...["id", ...names, "seconds", "warnings", "failure", "formula"].map((key) => {
      const arrow = order.key === key ? (order.descending ? " ▾" : " ▴") : "";
      const cell = make("th", {class: isText(key) ? "sort" : "sort number", tabindex: "0", title: search.units[key] ?? "", text: key + arrow});
      onPress(cell, () => {
        order = {key, descending: order.key === key ? !order.descending : isMaximized(key)};
        page = 0;
        drawCandidates();
      });
      return cell;
    }));
    const cells = (values) => names.map((name) => make("td", {class: "number", text: format(values(name))}));
    const baselines = search.baselines.map(({name, metrics, warnings, formula}) => make("tr", {class: "baseline"},
      make("td", {text: name}), ...cells((metric) => metrics[metric]), make("td"), make("td", {class: "badges"}, ...makeBadges(warnings)),
      make("td"), make("td", {class: "text formula", text: formula})));
    const rows = members.slice(page * ROWS, (page + 1) * ROWS).map((i) => {
      const row = make("tr", {class: search.ids[i] === chosen ? "row chosen" : "row", tabindex: "0", "data-id": search.ids[i]},
        make("td", {class: "number", text: String(search.ids[i])}), ...cells((name) => column(name)[i]),
        make("td", {class: "number", text: formatSeconds(search.seconds[i])}), make("td", {class: "badges"}, ...makeBadges(search.warnings[i])),
        make("td", {class: "text", text: getFailure(i)}), make("td", {class: "text formula", text: search.formulas[i]}));
      onPress(row, () => show(search.ids[i]));
      return row;
    });
    clear(byId("candidates"), make("thead", {}, head, ...baselines), make("tbody", {}, ...rows));
  }

  // ---- One operator

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  async function load(id) {
    if (live) {
      const response = await fetch(`details?id=${id}`);
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    }
    const position = positions.get(id), chunk = Math.floor(position / CHUNK);
    if (!chunks.has(chunk)) chunks.set(chunk, await unpack(byId(`details${chunk}`).textContent));
    return chunks.get(chunk)[position % CHUNK];
  }

  function drawPicture([width, height, nodes, edges]) {
    const root = svg("svg", {viewBox: `-4 -4 ${width + 8} ${height + 8}`, width: width + 8, role: "img"});
    for (const [label, x, y, spline] of edges) {
      let path = `M${spline[0]} ${spline[1]}`;
      for (let i = 2; i + 5 < spline.length; i += 6) path += `C${spline.slice(i, i + 6).join(" ")}`;
      root.append(svg("path", {d: path, class: "edge"}));
      const [tx, ty] = spline.slice(-2), [px, py] = spline.slice(-4, -2);
      const angle = Math.atan2(ty - py, tx - px), tip = [tx + 8 * Math.cos(angle), ty + 8 * Math.sin(angle)];
      const side = (turn) => `${tx + 4 * Math.cos(angle + turn)},${ty + 4 * Math.sin(angle + turn)}`;
      root.append(svg("polygon", {points: `${tip} ${side(Math.PI / 2)} ${side(-Math.PI / 2)}`, class: "head"}));
      if (label) root.append(svg("text", {x: x + 4, y, class: "label"}, label));
    }
    for (const [label, x, y, w, h, shape] of nodes) {
      if (shape === 1) root.append(svg("ellipse", {cx: x, cy: y, rx: w / 2, ry: h / 2, class: "end"}));
      else root.append(svg("rect", {x: x - w / 2, y: y - h / 2, width: w, height: h, rx: shape === 2 ? 0 : 8,
        class: shape === 2 ? "end" : "box"}));
      root.append(svg("text", {x, y}, label));
    }
    return make("div", {class: "picture"}, root);
  }

  function getAncestors(id) {
    const line = [];
    for (let at = search.parents[positions.get(id)]; at !== null && at !== undefined && !line.includes(at) && positions.has(at);)
      line.push(at), at = search.parents[positions.get(at)];
    return line.reverse();
  }

  function drawLineage(id) {
    const link = (other) => make("button", {type: "button", text: `candidate ${other}`, onclick: () => show(other)});
    const parts = [], ancestors = getAncestors(id), children = childrenOf.get(id) ?? [];
    if (ancestors.length) parts.push(make("h3", {text: "Made from"}), make("div", {class: "lineage"}, ...ancestors.slice(-12).map(link)));
    if (children.length) parts.push(make("h3", {text: `Made of it (${children.length})`}),
      make("div", {class: "lineage"}, ...children.slice(0, 24).map(link)));
    return parts;
  }

  function drawLayers(layers) {
    const head = ["layer", "×", "MACs", "FLOPs", "unprepared", "training FLOPs", "parameters", "bytes"];
    return make("div", {class: "scroll"}, make("table", {class: "layers"},
      make("tr", {}, ...head.map((text, i) => make("th", {text, class: i ? "number" : ""}))),
      ...layers.map(([binding, ...numbers]) => make("tr", {},
        make("td", {text: Object.entries(binding).map((entry) => entry.join("=")).join(" ")}),
        ...numbers.map((number) => make("td", {class: "number", text: format(number)}))))));
  }

  function drawCurves(curves) {
    const names = [...new Set(curves.map(([name]) => name))];
    return names.map((name) => {
      const element = make("div", {class: "curve"});
      // Plotly needs to know its size.
      requestAnimationFrame(() => plot(element, curves.filter((curve) => curve[0] === name).map(([, rung, seed, x, y]) => (
        {type: "scatter", mode: "lines+markers", x, y, name: `${Number(rung) ? `rung ${Number(rung)}, ` : ""}seed ${Number(seed)}`, marker: {size: 5}})),
        axis("epoch"), axis(plain(name)), {showlegend: curves.length > 1}));
      return element;
    });
  }

  function drawMetrics(i) {
    const names = Object.keys(search.metrics).filter((name) => isNumber(column(name)[i]));
    const row = (name, value, others, unit) => make("tr", {}, make("th", {text: name}), make("td", {class: "number", text: value}),
      ...others.map((text) => make("td", {class: "number", text})), make("td", {class: "hint", text: unit}));
    const compare = (name) => search.baselines.map(({metrics}) => format(metrics[name]));
    const rows = names.map((name) => row(name, format(column(name)[i]), compare(name), search.units[name] ?? ""));
    const head = ["", "candidate", ...search.baselines.map(({name}) => name), "unit"];
    rows.unshift(make("tr", {}, ...head.map((text, n) => make("th", {class: n && n < head.length - 1 ? "number" : "", text}))));
    rows.push(row("evaluation", formatSeconds(search.seconds[i]), search.baselines.map(() => ""), ""));
    return make("div", {class: "scroll"}, make("table", {class: "metrics"}, ...rows));
  }

  async function show(id, scroll = true) {
    if (!positions.has(id)) return;
    const changed = id !== chosen;
    chosen = id;
    const i = positions.get(id);
    let details;
    try {
      details = await load(id);
    } catch (error) {
      return fail(`candidate ${id} cannot be shown: ${error.message}`);
    }
    if (chosen !== id) return;
    const part = (title, ...elements) => [make("h3", {text: title}), ...elements];
    const parts = details.failures.flatMap((text) => part("Failed", make("pre", {class: "wrap failure", text})));
    if (details.formula) parts.push(...part("Formula", make("pre", {class: "wrap formula", text: details.formula})));
    for (const name of search.warnings[i])
      parts.push(make("p", {class: "hint"}, make("span", {class: "badge", text: name}), ` ${search.warning_texts[name] ?? ""}`));
    parts.push(...part("Metrics", drawMetrics(i)));
    if (details.layers?.length) parts.push(...part("Costs", drawLayers(details.layers)));
    if (details.curves.length) parts.push(...part("Training", ...drawCurves(details.curves)));
    if (details.pictures) parts.push(...part(details.pictures.length > 1 ? "Graphs" : "Graph", ...details.pictures.map(drawPicture)));
    else if (details.graph) parts.push(...part("Graph (for Graphviz)", make("pre", {text: details.graph})));
    if (details.nest) parts.push(...part("Loop nest of the first layer", make("pre", {class: "nest", text: details.nest})));
    parts.push(...part("Operator", make("pre", {class: "text", text: details.text.trim()})), ...drawLineage(id));
    parts.push(...part("Again", make("pre", {class: "wrap", text: `${search.command}\n# candidate ${id} of it`})));
    byId("nothing").hidden = true;
    byId("operator-heading").textContent = `Candidate ${id}${id === search.best ? ", the best" : ""}${frontOf.has(id) ? ", on the front" : ""}`;
    byId("details").hidden = false;
    clear(byId("details"), ...parts);
    byId("operator").dataset.candidate = id;
    if (!changed) return;
    history.replaceState(null, "", `#candidate=${id}`);
    byId("operator").scrollTop = 0;
    if (byId("front").data) Plotly.relayout("front", {shapes: getRing()});
    drawCandidates();
    if (scroll && byId("operator").getBoundingClientRect().top > innerHeight - 100) byId("operator").scrollIntoView();
  }

  // ---- All of it

  function update(summary) {
    search = summary;
    positions = new Map(search.ids.map((id, i) => [id, i]));
    childrenOf = new Map();
    search.parents.forEach((parent, i) => {
      if (parent === null) return;
      if (!childrenOf.has(parent)) childrenOf.set(parent, []);
      childrenOf.get(parent).push(search.ids[i]);
    });
    byId("title").textContent = search.name;
    const names = plotted().map((name) => [name, name]);
    fillChoices("front-x", names, search.axes[0]);
    fillChoices("front-y", names, search.axes[1]);
    fillChoices("history-y", names, search.axes[1]);
    fillChoices("filter", [["all", "all"], ["front", "the front"], ["evaluated", "evaluated"], ["failed", "failed"],
      ["asked", "in flight"], ...search.reasons.map(([reason], index) => [`reason ${index}`, `failed: ${reason.slice(0, 60)}`])], "all");
    performance.mark("kas-data");
    drawTiles();
    drawCharts();
    performance.mark("kas-front");
    drawFailures();
    drawCandidates();
    drawSettings();
    if (chosen !== null) show(chosen, false);
  }

  async function poll() {
    try {
      const response = await fetch(`summary?known=${encodeURIComponent(search?.version ?? "")}`);
      if (response.status === 200) {
        const first = !search;
        update(await response.json());
        if (first) start();
      } else if (response.status !== 204) throw new Error(await response.text());
      byId("status").textContent = `live, last looked at ${new Date().toLocaleTimeString()}`;
      byId("problem").hidden = true;
    } catch (error) {
      byId("status").textContent = "not connected";
      fail(`the report's server does not answer: ${error.message}`);
    }
    setTimeout(poll, POLL_MS);
  }

  function start() {
    listenTo("front");
    requestAnimationFrame(() => setTimeout(() => listenTo("history")));
    const wanted = location.hash.match(/^#candidate=(\d+)$/);
    if (wanted) show(Number(wanted[1]));
    else if (search.best !== null) show(search.best, false);
    document.documentElement.dataset.ready = "yes";
    performance.mark("kas-ready");
  }

  for (const id of ["front-x", "front-y", "front-log"]) byId(id).addEventListener("change", () => { drawFront(); drawCandidates(); });
  for (const id of ["history-x", "history-y"]) byId(id).addEventListener("change", drawHistory);
  byId("filter").addEventListener("change", () => { page = 0; drawCandidates(); });
  byId("find").addEventListener("input", () => { page = 0; drawCandidates(); });
  byId("previous").addEventListener("click", () => { page -= 1; drawCandidates(); });
  byId("next").addEventListener("click", () => { page += 1; drawCandidates(); });
  byId("theme").addEventListener("click", () => {
    theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("kas-theme", theme); } catch {}
    applyTheme();
  });
  preferred.addEventListener("change", applyTheme);

  applyTheme();
  if (live) poll();
  else unpack(byId("summary").textContent).then((summary) => { update(summary); start(); },
    (error) => fail(`this page cannot be read: ${error.message}`));
})();
