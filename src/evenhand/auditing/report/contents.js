(function () {
  "use strict";
  var links = Array.from(document.querySelectorAll("nav.side a"));
  var by = new Map(links.map(function (link) { return [link.hash.slice(1), link]; }));
  var watch = new IntersectionObserver(function (entries) {
    entries.filter(function (entry) { return entry.isIntersecting; }).forEach(function (entry) {
      links.forEach(function (link) { link.removeAttribute("aria-current"); });
      by.get(entry.target.id).setAttribute("aria-current", "true");
    });
  }, {rootMargin: "-8% 0px -80% 0px"});
  by.forEach(function (_, id) { var it = document.getElementById(id); if (it) { watch.observe(it); } });
})();
