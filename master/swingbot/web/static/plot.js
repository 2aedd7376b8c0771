// Adds to plots in pages, which are complete without it: what is under the pointer, and a range that
// is drawn with it.
"use strict";
for (const field of document.querySelectorAll("svg.field")) {
  const marks = Array.from(field.querySelectorAll("g.boot > a"), (link) => {
    const words = link.querySelector("title");
    const shown = { link, words: words.textContent, commit: words.textContent.split(" ")[0] };
    words.remove(); // the box below shows it, without a delay
    link.setAttribute("aria-label", shown.words);
    const place = link.lastElementChild;
    shown.x = parseFloat(place.getAttribute("cx") || place.getAttribute("x"));
    shown.y = parseFloat(place.getAttribute("cy") || place.getAttribute("y"));
    return shown;
  });
  if (!marks.length) continue;
  const box = document.createElement("div");
  box.className = "hover";
  box.hidden = true;
  document.body.append(box);
  const share = (event) => {
    const frame = field.getBoundingClientRect();
    return [(100 * (event.clientX - frame.left)) / frame.width, event.clientY - frame.top, frame];
  };
  const show = (mark, x, y) => {
    box.textContent = mark.words;
    box.hidden = false;
    box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.offsetWidth - 4))}px`;
    box.style.top = `${y + 18 + box.offsetHeight > innerHeight ? y - 12 - box.offsetHeight : y + 18}px`;
  };
  const range = document.querySelector("#range");
  let from = null, brush = null;
  field.addEventListener("pointermove", (event) => {
    const [x, y, frame] = share(event);
    if (from !== null) {
      if (!brush && Math.abs(x - from) > 1) {
        brush = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        brush.setAttribute("class", "brush");
        brush.setAttribute("height", "100%");
        field.append(brush);
        field.setPointerCapture(event.pointerId);
      }
      if (brush) {
        brush.setAttribute("x", `${Math.min(x, from)}%`);
        brush.setAttribute("width", `${Math.abs(x - from)}%`);
      }
    }
    let best = null, least = 24; // pixels
    for (const mark of marks) {
      const away = Math.hypot(((mark.x - x) * frame.width) / 100, mark.y - y);
      if (away < least) [best, least] = [mark, away];
    }
    if (best) show(best, event.clientX, event.clientY);
    else box.hidden = true;
  });
  field.addEventListener("pointerleave", () => { box.hidden = true; });
  field.addEventListener("focusin", (event) => {
    const mark = marks.find((one) => one.link === event.target);
    const place = event.target.getBoundingClientRect();
    if (mark) show(mark, place.left, place.top);
  });
  field.addEventListener("focusout", () => { box.hidden = true; });
  if (!range || field !== document.querySelector("#plot svg.field")) continue;
  field.addEventListener("dragstart", (event) => event.preventDefault());
  field.addEventListener("pointerdown", (event) => { if (event.button === 0) from = share(event)[0]; });
  const ends = (event) => {
    const [low, high] = [Math.min(from, share(event)[0]), Math.max(from, share(event)[0])];
    from = null;
    if (!brush) return;
    brush.remove();
    brush = null;
    const own = field.querySelector("g.boot"); // others may have commits of another tree
    const inside = marks.filter(
      (mark) => mark.link.parentNode === own && low <= mark.x && mark.x <= high,
    );
    if (inside.length < 2) return;
    inside.sort((one, other) => one.x - other.x);
    range.elements.namedItem("from").value = inside[0].commit;
    range.elements.namedItem("to").value = inside[inside.length - 1].commit;
    range.submit();
  };
  field.addEventListener("pointerup", ends);
  field.addEventListener("pointercancel", () => { from = null; brush?.remove(); brush = null; });
}
