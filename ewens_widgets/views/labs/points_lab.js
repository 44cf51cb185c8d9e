// A sheet to paint points on, by mouse, pen or finger. A stroke is shown while it is drawn, and sent to the
// kernel when it ends; the kernel answers with all points and their colours.

const SVG = "http://www.w3.org/2000/svg";

function make(name, css, parent) {
  const element = document.createElementNS(SVG, name);
  element.setAttribute("class", css);
  parent.append(element);
  return element;
}

function circles(parent, css, places, radius, fills) {
  while (parent.childElementCount > places.length) parent.lastElementChild.remove();
  places.forEach(([x, y], index) => {
    const circle = parent.children[index] ?? make("circle", css, parent);
    circle.setAttribute("cx", x);
    circle.setAttribute("cy", y);
    circle.setAttribute("r", radius);
    if (fills) circle.setAttribute("fill", fills[index] ?? fills[0]);
  });
}

function render({ model, el }) {
  el.classList.add("ew-sheet");
  const [width, height] = model.get("size");
  const svg = make("svg", "ew-paper", el);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  const layers = ["points", "stroke"].map((name) => make("g", `ew-sheet-${name}`, svg));
  const radius = 0.009 * width;
  let stroke = null; // points of the stroke that is being drawn

  const far = ([x, y], [left, top], distance) => Math.hypot(x - left, y - top) >= distance;
  const paint = () => {
    const { points, colours } = model.get("scene");
    const erased = model.get("tool") === "erase" ? (stroke ?? []) : [];
    const kept = points.map((place) => erased.every((one) => far(place, one, model.get("reach"))));
    circles(layers[0], "ew-sheet-point", points, radius, colours);
    kept.forEach((is_kept, index) => layers[0].children[index].setAttribute("opacity", is_kept ? 1 : 0.15));
    const preview = stroke && model.get("tool") !== "erase" ? stroke : [];
    circles(layers[1], "ew-sheet-new", preview, radius, ["#808080"]);
    svg.setAttribute("aria-label", `${points.length} points; the table beside it changes them too`);
  };
  const add = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const tool = model.get("tool");
    // A sprayed point lies somewhere around the pointer.
    const spread = () => (tool === "spray" ? (Math.random() + Math.random() - 1) * 0.06 * width : 0);
    const place = [x + spread(), y + spread()];
    const inside = place[0] >= 0 && place[0] <= width && place[1] >= 0 && place[1] <= height;
    const gap = tool === "spray" ? 0 : 0.02 * width;
    if (inside && (stroke.length === 0 || far(place, stroke.at(-1), gap))) stroke.push(place);
    paint();
  };
  const begin = (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    stroke = [];
    add(event);
  };
  const go = (event) => {
    if (stroke !== null) add(event);
  };
  const end = (event) => {
    if (stroke === null) return;
    if (event.type === "pointerup" && stroke.length) model.send({ kind: model.get("tool"), points: stroke });
    stroke = null;
    paint();
  };
  svg.addEventListener("pointerdown", begin);
  svg.addEventListener("pointermove", go);
  svg.addEventListener("pointerup", end);
  svg.addEventListener("pointercancel", end);
  model.on("change:scene", paint);
  paint();
  return () => model.off("change:scene", paint);
}

export default { render };
