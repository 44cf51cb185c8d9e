// The iterations of a run as a bar: what is done, the burn-in, the last jump of the log posterior, and a handle that is dragged to look back.

function render({ model, el }) {
  const track = document.createElement("div");
  const [done, leftOut, jump] = ["ew-done", "ew-burnt", "ew-jump"].map((name) => {
    const part = document.createElement("span");
    part.className = name;
    track.append(part);
    return part;
  });
  const handle = document.createElement("input");
  handle.type = "range";
  handle.min = "0";
  handle.title = "Show an earlier iteration; the chain keeps its state";
  handle.setAttribute("aria-label", "iteration on display");
  track.className = "ew-track";
  el.append(track, handle);

  let isHeld = false;
  const draw = () => {
    const [value, last, made, first, leap] = ["value", "max", "done", "burn_in", "jump"].map((name) => model.get(name));
    const share = (iteration) => `${(100 * Math.min(iteration, last)) / last}%`;
    handle.max = String(last);
    if (!isHeld) handle.value = String(value);
    handle.setAttribute("aria-valuetext", `iteration ${value}; ${made} of ${last} are done`);
    done.style.width = share(made);
    leftOut.style.width = share(first);
    leftOut.title = `burn-in: the first ${first} iterations are left out of averages`;
    jump.hidden = leap < 0;
    jump.style.left = share(Math.max(0, leap));
    jump.title = `the log posterior jumped up at iteration ${leap}`;
  };
  handle.addEventListener("pointerdown", () => (isHeld = true));
  handle.addEventListener("pointerup", () => (isHeld = false));
  handle.addEventListener("pointercancel", () => (isHeld = false));
  handle.addEventListener("input", () => {
    handle.value = String(Math.min(Number(handle.value), model.get("done"))); // what is not done yet cannot be shown
    model.set("value", Number(handle.value));
    model.save_changes();
  });
  model.on("change", draw);
  draw();
  return () => model.off("change", draw);
}

export default { render };
