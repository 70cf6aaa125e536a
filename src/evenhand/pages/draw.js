(function () {
  "use strict";
  var drawing = JSON.parse(document.getElementById("drawing").textContent);
  // Colours need no second drawing on a dark screen or on paper: the style sheet gives them their meaning.
  drawing.look.font = getComputedStyle(document.documentElement).getPropertyValue("--sans").trim();
  window.drawFigure = function (place, spec) {
    var label = place.getAttribute("aria-label");
    return window.vegaEmbed(place, spec, {mode: "vega-lite", actions: false, renderer: "svg", config: drawing.look}).then(function () {
      // Vega has put its own in their place, which do not say the result.
      place.setAttribute("role", "img");
      if (label) { place.setAttribute("aria-label", label); }
      place.setAttribute("data-drawn", "yes");
    });
  };
  Object.keys(drawing.specs).forEach(function (name) {
    var place = document.getElementById("figure-" + name);
    if (place) { window.drawFigure(place, drawing.specs[name]); }
  });
})();
