// The link between a page and its kernel: acknowledges painted frames, starts downloads, names the parts of
// the page for screen readers, lets them have their keys, and sweeps up after the plotting library.

// Silent for so long while the chain runs, in milliseconds, the kernel may take this page for closed.
const SILENCE = 3000;

// bqplot's bars leave an empty group behind at each change; swept up once in so many frames.
const SWEPT_FRAMES = 50;
const LEFT_BEHIND = ".bargroup ~ g:empty:not([class])";

// What the arrow keys work on. JupyterLab would take them to go from cell to cell, unless the focused element
// itself (not one around it) forbids that.
const USES_ARROWS = "select, .noUi-handle";

function render({ model, el }) {
  el.classList.add("ew-page");
  el.setAttribute("aria-hidden", "true");
  const viewer = Math.random().toString(36).slice(2) + Date.now().toString(36);
  const isVisible = () => document.visibilityState === "visible";
  const root = () => el.closest(".ew-explorer") ?? el.parentElement;

  const say = (kind, rest = {}) => {
    try {
      model.send({ kind, viewer, ...rest });
    } catch (error) {
      clearInterval(heartbeat); // the kernel is gone
    }
  };

  let isAsked = false;
  let lastSign = performance.now();
  let sweptAt = 0;
  const acknowledge = () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      lastSign = performance.now();
      const number = model.get("frame");
      say("painted", { number });
      // Not at fixed numbers: of two frames that come together only the later is seen here.
      if (Math.abs(number - sweptAt) >= SWEPT_FRAMES) {
        sweptAt = number;
        sweep();
      }
    });
  };

  const sweep = () => {
    for (const group of root()?.querySelectorAll(LEFT_BEHIND) ?? []) group.remove();
  };

  // bqplot's pictures have an address for each change and keep all the bytes ever shown; we let go of the last.
  const letGo = new MutationObserver((changes) => {
    for (const { oldValue } of changes) {
      if (oldValue?.startsWith("blob:")) URL.revokeObjectURL(oldValue);
    }
  });
  const watchPictures = () => {
    if (root()) letGo.observe(root(), { subtree: true, attributeFilter: ["href"], attributeOldValue: true });
  };

  const download = (message, buffers) => {
    if (message.kind !== "download" || !isVisible()) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([buffers[0]], { type: message.type }));
    link.download = message.name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const name = () => {
    for (const [selector, attributes] of Object.entries(model.get("names"))) {
      for (const part of root()?.querySelectorAll(selector) ?? []) {
        for (const [attribute, value] of Object.entries(attributes)) part.setAttribute(attribute, value);
      }
    }
  };

  const keepArrows = ({ target }) => {
    if (target.matches(USES_ARROWS)) target.setAttribute("data-lm-suppress-shortcuts", "true");
  };

  const greet = () => say(isVisible() ? "here" : "gone");
  const leave = () => say("gone");
  const heartbeat = setInterval(() => {
    // Not while the chain rests: each message counts as activity of the kernel.
    if (isVisible() && model.get("is_running") && performance.now() - lastSign > SILENCE) say("here");
  }, SILENCE / 3);
  const namings = [0, 500, 2000].map((delay) => setTimeout(name, delay));
  let around = null;
  const watching = setTimeout(() => {
    // Once this element is on the page.
    watchPictures();
    around = root();
    around?.addEventListener("focusin", keepArrows);
  });

  model.on("change:frame", acknowledge);
  model.on("msg:custom", download);
  document.addEventListener("visibilitychange", greet);
  window.addEventListener("pagehide", leave);
  greet();

  return () => {
    clearInterval(heartbeat);
    [...namings, watching].forEach(clearTimeout);
    letGo.disconnect();
    around?.removeEventListener("focusin", keepArrows);
    model.off("change:frame", acknowledge);
    model.off("msg:custom", download);
    document.removeEventListener("visibilitychange", greet);
    window.removeEventListener("pagehide", leave);
    leave();
  };
}

export default { render };
