// A restaurant: tables, guests at them, and guests that are moved to another table by mouse or keyboard.
// All places come from the kernel, in units of the room; the picture scales with its element. A dropped guest
// returns to its seat at once, and the kernel then sends its new place.

const SVG = "http://www.w3.org/2000/svg";

function make(name, css, parent) {
  const element = document.createElementNS(SVG, name);
  element.setAttribute("class", css);
  parent.append(element);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
}

// As many children as there are rows; those that stay keep their place, so that they can glide to the next one.
function match(parent, rows, name, css, describe) {
  while (parent.childElementCount > rows.length) parent.lastElementChild.remove();
  rows.forEach((row, index) => {
    const child = parent.children[index] ?? make(name, css, parent);
    describe(child, row, index);
  });
}

const at = ([x, y]) => `transform: translate(${x}px, ${y}px)`;

function render({ model, el }) {
  el.classList.add("ew-room");
  const svg = make("svg", "ew-floor", el);
  const layers = {};
  for (const name of ["tables", "texts", "guests", "numbers", "rings"]) layers[name] = make("g", `ew-${name}`, svg);
  const voice = document.createElement("span");
  voice.className = "ew-spoken";
  voice.setAttribute("aria-live", "polite");
  el.append(voice);
  set(svg, { tabindex: 0, role: "application", "data-lm-suppress-shortcuts": "true" });

  let scene = model.get("scene");
  let dragged = null; // index and place of the guest under the pointer
  let held = null; // index of the guest that the keyboard holds, and the table that it would go to

  const paint = () => {
    scene = model.get("scene");
    const { room, tables, guests, spacing, newest, numbered } = scene;
    set(svg, { viewBox: `0 0 ${room[0]} ${room[1]}`, "aria-label": scene.description });
    match(layers.tables, tables, "circle", "ew-table", (circle, table, index) => {
      const isNew = index === tables.length - 1;
      set(circle, { r: table.r, style: at([table.x, table.y]), fill: isNew ? "none" : table.colour });
      set(circle, { "data-new": isNew, "data-aim": held !== null && held.table === index });
    });
    match(layers.texts, tables, "text", "ew-table-text", (text, table) => {
      set(text, { style: at([table.x, table.y + table.r + 12]) });
      if (text.textContent !== table.text) text.textContent = table.text;
    });
    match(layers.guests, guests, "circle", "ew-guest", (circle, [x, y, table], index) => {
      const place = dragged?.guest === index ? dragged.place : [x, y];
      set(circle, { r: 0.72 * spacing, style: at(place), fill: tables[table].colour, "data-guest": index });
    });
    set(layers.numbers, { style: `font-size: ${Math.min(9, 1.15 * spacing)}px` });
    match(layers.numbers, numbered ? guests : [], "text", "ew-guest-number", (text, [x, y, table], index) => {
      const place = dragged?.guest === index ? dragged.place : [x, y];
      set(text, { style: at([place[0], place[1] + 3]), fill: tables[table].ink });
      if (text.textContent !== String(index + 1)) text.textContent = index + 1;
    });
    const rings = [newest, held?.guest ?? -1].filter((guest) => guest >= 0 && guest < guests.length);
    match(layers.rings, rings, "circle", "ew-ring", (circle, guest) => {
      const [x, y] = dragged?.guest === guest ? dragged.place : guests[guest];
      set(circle, { r: 1.05 * spacing + 2, style: at([x, y]) });
    });
  };

  const placeOf = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [x, y];
  };

  const lift = (event) => {
    const guest = event.target.dataset?.guest;
    if (guest === undefined || event.button !== 0) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    svg.classList.add("ew-dragging");
    dragged = { guest: Number(guest), place: placeOf(event) };
    paint();
  };
  const carry = (event) => {
    if (dragged === null) return;
    dragged.place = placeOf(event);
    paint();
  };
  const drop = (event) => {
    if (dragged === null) return;
    const { guest } = dragged;
    const [x, y] = placeOf(event);
    dragged = null;
    svg.classList.remove("ew-dragging");
    if (event.type === "pointerup") model.send({ kind: "drop", guest, x, y });
    paint();
  };

  const say = () => {
    const last = scene.tables.length - 1;
    const name = (table) => (table === last ? "a new table" : `table ${table + 1}`);
    const sits = scene.guests[held.guest][2];
    voice.textContent =
      `guest ${held.guest + 1} at ${name(sits)}` +
      (held.table === sits ? "" : `; Enter moves to ${name(held.table)}, ${scene.tables[held.table].text}`);
  };
  const press = (event) => {
    const { guests, tables } = scene;
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (guests.length === 0 || !(steps || ["Enter", "Escape"].includes(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
    if (steps) {
      const [guestStep, tableStep] = steps;
      const guest = held === null ? 0 : (held.guest + guestStep + guests.length) % guests.length;
      const table = guestStep || held === null ? guests[guest][2] : held.table;
      held = { guest, table: (table + tableStep + tables.length) % tables.length };
      say();
    } else if (event.key === "Enter" && held !== null) {
      model.send({ kind: "move", guest: held.guest, table: held.table });
      held = null;
    } else {
      held = null;
    }
    paint();
  };
  const letGo = () => {
    held = null;
    voice.textContent = "";
    paint();
  };

  const repaint = () => {
    // The guest that was held may have left, or moved to another table.
    held = null;
    paint();
  };
  svg.addEventListener("pointerdown", lift);
  svg.addEventListener("pointermove", carry);
  svg.addEventListener("pointerup", drop);
  svg.addEventListener("pointercancel", drop);
  svg.addEventListener("keydown", press);
  svg.addEventListener("blur", letGo);
  model.on("change:scene", repaint);
  paint();
  return () => model.off("change:scene", repaint);
}

export default { render };
