(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("people-data").textContent);
  var people = new Map(data.people.map(function (person) { return [person.id, person]; }));
  var form = document.getElementById("look"), input = document.getElementById("look-id");
  var status = document.getElementById("look-status"), place = document.getElementById("person");
  var methods = ["closest", "plausible", "steady"];
  var colors = data.colors, shapes = data.shapes;
  var arrows = {up: ["▲", "increase"], down: ["▼", "decrease"], to: ["→", "change"]};

  function known(method) { return methods.indexOf(method) < 0 ? "other" : method; }
  // Everything that comes from the data goes through here, as text and never as markup.
  function make(tag, kind, text) {
    var made = document.createElement(tag);
    if (kind) { made.className = kind; }
    for (var at = 2; at < arguments.length; at += 1) {
      var part = arguments[at];
      if (part !== null && part !== undefined && part !== "") {
        made.append(part instanceof Node ? part : document.createTextNode(String(part)));
      }
    }
    return made;
  }
  function digits(value) {
    if (value === 0) { return "0"; }
    var size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(2)))));
    var text = value.toLocaleString("en", size < -4 ? {maximumSignificantDigits: 2} : {minimumFractionDigits: Math.max(0, 1 - size), maximumFractionDigits: Math.max(0, 1 - size)});
    return text.replace("-", "−");
  }
  function cost(value) { return digits(value) + (data.unit ? " " + data.unit : ""); }
  function labelled(name, text) {
    var cell = make("td", "r whole", text);
    cell.dataset.l = name;
    return cell;
  }
  function named(method) { return make("span", "m name-" + known(method), method); }

  function told(rows) {
    var list = make("ul", "told");
    rows.forEach(function (row) {
      var hidden = make("span", "vh", arrows[row.way][1]), sign = make("span", "", arrows[row.way][0]);
      sign.setAttribute("aria-hidden", "true");
      var change = row.before === null || row.after === null ? "" : " " + row.before + " → " + row.after;
      list.append(make("li", "", sign, hidden, " ", make("b", "", row.column), change));
    });
    return list;
  }

  function proof(row) {
    if (row.gap === null) { return "Not proven to be the cheapest."; }
    return row.gap > 0.005 * (row.cost || 0) ? "At most " + cost(row.gap) + " above the cheapest possible." : "Proven to be the cheapest of its kind.";
  }

  function says(person) {
    var head = make("tr");
    ["Method", "This person is told", "Cost", "Moves"].forEach(function (name, at) {
      var cell = make("th", at > 1 ? "r" : "", name);
      cell.scope = "col";
      head.append(cell);
    });
    var body = make("tbody");
    person.methods.forEach(function (row) {
      var first = make("th", "", named(row.method), row.method === data.in_use ? make("span", "plain", "in use") : null);
      first.scope = "row";
      var answer = make("td");
      answer.dataset.l = "This person is told";
      if (row.told.length) { answer.append(told(row.told)); } else { answer.append(make("span", "muted", row.reason || "no explanation (" + row.status + ")")); }
      if (row.certificate) { answer.append(make("span", "plain", row.certificate.text)); }
      if (row.told.length) { answer.append(make("span", "plain", proof(row))); }
      body.append(make("tr", "", first, answer,
        labelled("Cost", row.cost === null ? "–" : cost(row.cost)),
        labelled("Moves", row.amplification === null ? "–" : digits(row.amplification) + "×")));
    });
    var table = make("table", "stack", make("caption", "vh", "What each method says"), make("thead", "", head), body);
    table.id = "says";
    return table;
  }

  function axis(side, name) {
    var levels = side.levels;
    var look = {labelFontSize: 12, grid: name === "y", domain: name === "x", tickCount: 4};
    if (levels) {
      look.values = levels.map(function (_, at) { return at; });
      look.labelExpr = name + "_levels[datum.value]";
      look.labelLimit = 90;
      look.labelOverlap = "greedy";
    }
    if (name === "x") { Object.assign(look, {titleAnchor: "end", titleAlign: "right", titleLimit: 300}); }
    return look;
  }
  function title(side) { return (side.levels ? "told to have " : "told to change ") + side.column + (side.levels ? "" : " by"); }

  function cloud(person) {
    var found = person.cloud, order = Object.keys(found.points).sort(function (a, b) {
      return (methods.indexOf(a) + 9) % 9 - (methods.indexOf(b) + 9) % 9;
    });
    var layers = [], flat = !found.y;
    function dots(rows, method, size, more) {
      var name = known(method);
      layers.push({
        data: {values: rows},
        mark: Object.assign({type: "point", filled: true, shape: shapes[name], size: size, fill: colors[name], opacity: 1}, more),
        encoding: {x: x, y: y}
      });
    }
    var x = {field: "x", type: "quantitative", title: title(found.x) + " →", axis: axis(found.x, "x"), scale: scaled(found.x)};
    var y = flat
      ? {field: "y", type: "quantitative", title: null, axis: null, scale: {domain: [-0.6, order.length - 0.4]}}
      : {field: "y", type: "quantitative", title: null, axis: axis(found.y, "y"), scale: scaled(found.y)};
    function scaled(side) { return side.levels ? {domain: [-0.5, side.levels.length - 0.5], nice: false} : {zero: false, padding: 14, nice: true}; }
    // Levels are whole numbers: many variations share one, so they are drawn beside each other, always the same way.
    function spread(value, side, at) { return side && side.levels ? value + 0.5 * ((at * 0.618034) % 1 - 0.5) : value; }
    function whole(pair) { return pair[0] !== null && (flat || pair[1] !== null); }
    function point(pair, row, at) {
      return {x: spread(pair[0], found.x, at), y: flat ? order.length - 1 - row + 0.36 * ((at * 0.618034) % 1 - 0.5) : spread(pair[1], found.y, at)};
    }
    order.forEach(function (method, row) {
      dots(found.points[method].draws.filter(whole).map(function (pair, at) { return point(pair, row, at + 1); }), method, 18, {opacity: 0.65});
    });
    order.forEach(function (method, row) {
      var at = found.points[method].at;
      if (!at || !whole(at)) { return; }
      var centre = {x: at[0], y: flat ? order.length - 1 - row : at[1], t: method};
      dots([centre], method, 150, {stroke: colors.rim, strokeWidth: 1.5});
      layers.push({
        data: {values: [centre]},
        mark: {type: "text", color: colors[known(method)], fontWeight: 600, fontSize: 12.5, dy: [-15, 18, -15][row % 3] || -15},
        encoding: {x: x, y: y, text: {field: "t", type: "nominal"}}
      });
    });
    var params = [];
    if (found.x.levels) { params.push({name: "x_levels", value: found.x.levels}); }
    if (found.y && found.y.levels) { params.push({name: "y_levels", value: found.y.levels}); }
    var spec = {width: "container", height: flat ? 60 * order.length : 210, params: params, layer: layers};
    if (!flat) { spec.title = {text: "↑ " + title(found.y), anchor: "start", frame: "group", fontSize: 12, fontWeight: "normal", color: colors.other, limit: 300}; }
    return spec;
  }

  function show(id, focus) {
    var person = people.get(id);
    if (!person) {
      place.replaceChildren();
      status.textContent = "Row " + id + " cannot be looked up here: " + people.size.toLocaleString("en") +
        (people.size === 1 ? " person" : " people") + " can. Ids listed under “lookup” in audit.toml are added.";
      return;
    }
    input.value = id;
    var panel = make("article", "person");
    panel.tabIndex = -1;
    var using = person.methods.find(function (row) { return row.method === data.in_use; });
    var eyebrow = "Row " + id + " · decision: " + person.decision + (person.target === null ? "" : " · explained towards: " + person.target);
    if (using && using.amplification !== null) {
      eyebrow += " · amplification " + digits(using.amplification) + "×";
      if (data.limit !== null) { eyebrow += (using.amplification > data.limit ? ", above" : ", within") + " the limit of " + data.limit_text; }
    }
    var heading = make("h3", "", person.title);
    heading.id = "person-title";
    panel.setAttribute("aria-labelledby", "person-title");
    var facts = make("dl", "on-file");
    person.facts.forEach(function (fact) { facts.append(make("dt", "", fact[0]), make("dd", "", fact[1])); });
    var right = make("div", "", make("h4", "", "What slight variations of this person are told"));
    panel.append(make("p", "eyebrow", eyebrow), heading, make("p", "", person.sentence),
      make("div", "cols", make("div", "", make("h4", "", "On file"), facts, make("h4", "", "What each method says"), says(person)), right));
    place.replaceChildren(panel);
    var drawn = person.cloud && Object.keys(person.cloud.points).length;
    if (drawn) {
      var plot = make("div", "plot");
      plot.id = "figure-cloud";
      plot.setAttribute("role", "img");
      plot.setAttribute("aria-label", "What variations of row " + id + " are told, by method. " + person.title);
      right.append(plot, make("p", "small muted", "Large mark: the person. Small marks: variations. A tight cloud is a stable explanation; two clouds are two different answers."));
      window.drawFigure(plot, cloud(person));
    } else {
      right.append(make("p", "empty", "There is nothing to draw: no explanation of this person could be compared."));
    }
    status.textContent = "Showing row " + id + ".";
    if (focus) { panel.focus({preventScroll: true}); panel.scrollIntoView({block: "start"}); }
  }

  function linked() {
    var found = /^#row-(.+)$/.exec(window.location.hash);
    if (!found) { return false; }
    var id = found[1];
    try { id = decodeURIComponent(id); } catch (error) { /* then it stands as it is */ }
    show(id, true);
    return true;
  }
  form.addEventListener("submit", function (event) {
    event.preventDefault();
    var id = input.value.trim();
    if (!id) { status.textContent = "Enter a row id."; return; }
    var next = "#row-" + encodeURIComponent(id);
    if (window.location.hash === next) { show(id, true); } else { window.location.hash = next; }
  });
  window.addEventListener("hashchange", linked);
  if (!linked() && data.people.length) { show(data.people[0].id, false); status.textContent = ""; }
})();
