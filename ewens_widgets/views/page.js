// The link between a page and its kernel: acknowledges frames when they are painted, starts downloads, names the parts of
// the page for screen readers, lets them have their keys, fits the widget to its window, enlarges views, shows
// all of it to a whole room, tells what is under the mouse, and releases pictures that were replaced.

// Silent for so long while the chain runs, in milliseconds, the kernel may take this page for closed.
const SILENCE = 3000;

// Headings of the sections that open and close; ipywidgets has them for the mouse alone.
const SECTION = ".jupyter-widget-Collapse-header";

// What has a use of its own for arrow keys or for letters.
const USES_ARROWS = "select, .noUi-handle, input, textarea, [contenteditable]";
const USES_LETTERS = "select, input:not([type=checkbox]), textarea, [contenteditable]";

// Type and marks: as large as the window allows, and for a room 1.6 times the usual size.
const PRESENTED = 1.6;
const LARGEST = 1.3;
const USUAL = { width: 1180, height: 680 };
const LEAST_ROOM = 560;
const NARROW = [560, 700, 760, 860, 900]; // widths below which the stylesheet arranges things otherwise
const LOW = 620; // a window as low as this has small controls
const BELOW = 10; // pixels left free below the widget
const PART_PAUSE = 600; // milliseconds between the parts of a large file
const THEME_EVENTS = ["transitionend", "transitioncancel"];
const POINTED = 120; // milliseconds for which the mouse rests before somebody is asked what is there

// Whether a page is light on dark, whichever program shows it: by the colour behind the widget.
function isDark(element) {
  for (let box = element; box; box = box.parentElement) {
    const [red, green, blue, opacity = 1] = getComputedStyle(box).backgroundColor.match(/[\d.]+/g).map(Number);
    if (opacity > 0.5) return 0.3 * red + 0.59 * green + 0.11 * blue < 128;
  }
  return false;
}

// What the widget is scrolled in: the outermost box, since those within it are as high as their content.
function scrollerOf(element) {
  let found = document.documentElement;
  for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
    const scrolls = /auto|scroll/.test(getComputedStyle(box).overflowY);
    if (scrolls && box.clientHeight > 0 && box.clientHeight <= window.innerHeight) found = box;
  }
  return found;
}

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
  const acknowledge = () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      lastSign = performance.now();
      say("painted", { number: model.get("frame") });
    });
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

  const parts = { name: "", received: [], size: 0 };
  const copy = (message) => {
    // Some pages may not write to the clipboard; the text stands in the panel as well.
    if (message.kind === "copy" && isVisible()) navigator.clipboard?.writeText(message.text).catch(() => {});
  };
  // A server passes on only so much in a second: a large file comes in parts, each of which is asked for.
  const download = ({ kind, name, type, start, size }, buffers) => {
    if (kind !== "download" || !isVisible()) return;
    if (start === 0) Object.assign(parts, { name, received: [], size: 0 });
    if (parts.name !== name || parts.size !== start) return;
    parts.received.push(buffers[0]);
    parts.size += buffers[0].byteLength;
    if (parts.size < size) {
      setTimeout(() => say("more", { start: parts.size }), PART_PAUSE);
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts.received, { type }));
    link.download = name;
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
    // What has no name of its own is called by the label beside it, by its hint, or by the view around it.
    const call = (selector, attribute, nameOf) => {
      for (const part of root()?.querySelectorAll(selector) ?? []) {
        if (!part.hasAttribute(attribute)) part.setAttribute(attribute, nameOf(part)?.trim() ?? "");
      }
    };
    call(".noUi-handle", "aria-label", (part) => part.closest(".widget-inline-hbox")?.querySelector(".widget-label")?.textContent);
    call("select[title]", "aria-label", (part) => {
      const label = part.closest(".widget-inline-hbox")?.querySelector(".widget-label")?.textContent;
      return label?.trim() || part.title;
    });
    for (const section of root()?.querySelectorAll(SECTION) ?? []) {
      const isOpen = section.parentElement.classList.contains("jupyter-widget-Collapse-open");
      section.tabIndex = 0;
      section.setAttribute("role", "button");
      section.setAttribute("aria-label", section.textContent.trim()); // without the sign before it
      section.setAttribute("aria-expanded", String(isOpen));
    }
    call("img", "alt", (part) => {
      const view = part.closest("[role=group]")?.getAttribute("aria-label") ?? "";
      return `${view}: ${part.parentElement?.textContent ?? ""}`;
    });
  };

  // JupyterLab would take keys for itself, unless the focused element (not one around it) forbids that. Those with a modifier, such as
  // Ctrl+S, are its own. It listens at the document, so the window has to be asked first.
  const keepKeys = (event) => {
    const { target, ctrlKey, metaKey, altKey } = event;
    const help = event.key === "Escape" && around?.querySelector("details.ew-explain[open]");
    if (help) {
      // Wherever the focus is: a click that opens a help text need not give it the focus.
      help.open = false;
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (!around?.contains(target) || !target.setAttribute) return;
    if (ctrlKey || metaKey || altKey) target.removeAttribute("data-lm-suppress-shortcuts");
    else target.setAttribute("data-lm-suppress-shortcuts", "true");
  };

  const isPresenting = () => around?.classList.contains("ew-presenting") ?? false;

  // Fit the widget to its window, and tell the kernel of what it decides about: margins, and the lengths of units. While data-ew-room is
  // "asked", its answer is still to come.
  let told = "";
  let tellings = 0;
  const fit = () => {
    if (!around?.isConnected || !isVisible()) return;
    const scroller = scrollerOf(around);
    const isWindow = isPresenting() || scroller === document.documentElement;
    // Where a browser refuses the whole screen, a box around the widget may keep it smaller than the window.
    if (isPresenting()) around.style.setProperty("--ew-room", "0px");
    const height = isPresenting() ? around.clientHeight : isWindow ? window.innerHeight : scroller.clientHeight;
    const start = isWindow ? 0 : scroller.getBoundingClientRect().top - scroller.scrollTop;
    const above = isPresenting() ? 0 : around.getBoundingClientRect().top + (isWindow ? window.scrollY : 0) - start;
    // A margin above the widget comes again below it; what is further above can be scrolled away.
    const margins = above < 60 ? 2 * Math.max(0, above) : 0;
    const room = Math.max(LEAST_ROOM, height - margins - BELOW);
    const width = around.clientWidth;
    // Classes, and no container queries: these halve the number of frames that are painted.
    for (const least of NARROW) around.classList.toggle(`ew-under-${least}`, width <= least);
    around.classList.toggle("ew-short", window.innerHeight <= LOW && !isPresenting());
    const fitting = Math.min(width / USUAL.width, room / USUAL.height, LARGEST);
    const scale = isPresenting() ? PRESENTED : Math.max(1, Math.round(20 * fitting) / 20);
    around.style.setProperty("--ew-room", `${Math.floor(room)}px`);
    // Settings may be higher than the window; the pictures beside them are not.
    const columns = around.querySelector(":scope > .ew-explorer-columns");
    if (columns) around.style.setProperty("--ew-picture-room", `${Math.floor(room - columns.offsetTop - 8)}px`);
    const heatmap = around.querySelector(".ew-heatmap");
    if (heatmap) around.style.setProperty("--ew-side", `${heatmap.clientWidth - Math.round(42 * scale)}px`);
    around.style.setProperty("--ew-scale", String(scale));
    around.classList.toggle("ew-scaled", scale !== 1); // to transform every dot costs frames
    const sizes = {};
    for (const figure of around.querySelectorAll(".ew-figure")) {
      const { width, height } = figure.getBoundingClientRect();
      if (!(width > 0)) continue;
      sizes[figure.dataset.ewName ?? nameOf(figure)] = [Math.round(width), Math.round(height)];
      // While a browser lays out boxes within boxes it tries several sizes; a drawing that followed them would have all its ticks laid out
      // again each time, at every change of any text on the page.
      for (const drawing of figure.querySelectorAll(":scope > svg")) {
        drawing.style.width = `${width}px`;
        drawing.style.height = `${height}px`;
      }
    }
    const dark = isDark(around);
    around.classList.toggle("ew-dark", dark);
    const now = JSON.stringify([scale, sizes, dark]);
    if (now !== told) {
      told = now;
      tellings += 1;
      around.dataset.ewRoom = "asked";
      say("room", { scale, sizes, dark, number: tellings });
    }
  };
  const settle = (message) => {
    if (message.kind === "fitted" && message.viewer === viewer && message.number === tellings) {
      around.dataset.ewRoom = "given";
      requestAnimationFrame(() => requestAnimationFrame(() => around.classList.add("ew-fitted"))); // once bqplot has drawn
    }
  };
  const nameOf = (figure) => [...figure.classList].find((name) => name.startsWith("ew-") && name !== "ew-figure");
  let fitting = 0;
  const fitSoon = () => {
    cancelAnimationFrame(fitting);
    fitting = requestAnimationFrame(fit);
  };
  const sizeWatch = new ResizeObserver(fitSoon);
  // The stylesheet gives the surface's colour to something that is not seen, and lets that pass gradually: so there is an event when a
  // theme has arrived, however late its own stylesheet comes. A second stylesheet may cut the first change short.
  const onTheme = ({ target, propertyName }) => {
    if (target === around && propertyName === "text-decoration-color") fitSoon();
  };
  const watchSizes = () => {
    // Its rows too: what is above the pictures decides how much room is left for them.
    for (const part of [scrollerOf(around), around, ...around.children, ...around.querySelectorAll(".ew-figure")]) sizeWatch.observe(part);
    fitSoon();
  };

  const putBack = () => {
    for (const large of around.querySelectorAll(".ew-large")) large.classList.remove("ew-large");
    around.classList.remove("ew-has-large");
    markButtons();
  };
  const enlarge = (view) => {
    const wasLarge = view.classList.contains("ew-large");
    putBack();
    view.classList.toggle("ew-large", !wasLarge);
    around.classList.toggle("ew-has-large", !wasLarge);
    markButtons();
    fitSoon();
  };
  const markButtons = () => {
    for (const button of around.querySelectorAll("button.ew-enlarge")) {
      const isLarge = button.closest(".ew-view")?.classList.contains("ew-large") ?? false;
      button.setAttribute("aria-pressed", String(isLarge));
      button.title = isLarge ? "Return to normal size (Esc)" : "Enlarge";
    }
    around.querySelector("button.ew-present")?.setAttribute("aria-pressed", String(isPresenting()));
  };

  const present = async (wanted) => {
    around.classList.toggle("ew-presenting", wanted);
    markButtons();
    fitSoon();
    try {
      if (wanted) await around.requestFullscreen();
      else if (document.fullscreenElement === around) await document.exitFullscreen();
    } catch (error) {
      // A page within a page may not fill the screen; the widget then fills the window.
    }
    fitSoon();
  };
  const onFullscreen = () => {
    if (document.fullscreenElement !== around && isPresenting()) present(false);
  };

  const onClick = ({ target }) => {
    const button = target.closest?.("button");
    if (button?.matches(".ew-enlarge")) enlarge(button.closest(".ew-view"));
    else if (button?.matches(".ew-present")) present(!isPresenting());
    if (target.closest?.(SECTION)) requestAnimationFrame(name); // it is open then, or closed, and so is another one
    for (const help of around.querySelectorAll("details.ew-explain[open]")) {
      if (!help.contains(target)) help.open = false;
    }
  };

  // A help text opens where there is room for it.
  const placeHelp = ({ target }) => {
    if (!target.matches?.("details.ew-explain[open]")) return;
    const text = target.querySelector(":scope > div");
    text.style.left = text.style.top = text.style.bottom = "";
    const box = text.getBoundingClientRect();
    const frame = around.getBoundingClientRect();
    const beyond = box.right - Math.min(frame.right, document.documentElement.clientWidth - 4);
    if (beyond > 0) text.style.left = `${-Math.ceil(beyond)}px`;
    if (box.bottom > window.innerHeight - 4) Object.assign(text.style, { top: "auto", bottom: "130%" });
  };

  // What is under the mouse: the kernel knows, and is asked when the mouse comes to rest.
  const tip = document.createElement("div");
  tip.className = "ew-tip";
  tip.setAttribute("role", "tooltip");
  let pointing = 0;
  let pointed = null; // the figure that the kernel was asked about
  const hideTip = () => {
    clearTimeout(pointing);
    tip.remove();
  };
  const leaveFigure = () => {
    hideTip();
    if (pointed) say("point", { figure: nameOf(pointed) });
    pointed = null;
  };
  const onMove = ({ target, clientX, clientY, buttons }) => {
    const figure = target.closest?.(".ew-figure");
    hideTip();
    if (!figure || buttons) {
      leaveFigure();
      return;
    }
    pointing = setTimeout(() => {
      const box = figure.getBoundingClientRect();
      const frame = around.getBoundingClientRect();
      pointed = figure;
      tip.style.left = tip.style.right = tip.style.top = "";
      // To the side where there is more room.
      if (clientX < frame.left + frame.width / 2) tip.style.left = `${clientX - frame.left + 14}px`;
      else tip.style.right = `${frame.right - clientX + 10}px`;
      tip.style.top = `${clientY - frame.top + (isPresenting() ? around.scrollTop : 0) + 12}px`;
      say("point", { figure: nameOf(figure), x: clientX - box.left, y: clientY - box.top });
    }, POINTED);
  };
  const showTip = (message) => {
    if (message.kind !== "tip" || message.viewer !== viewer || !pointed) return;
    tip.textContent = message.text;
    if (message.text) around.append(tip);
    else tip.remove();
  };

  const press = (name) => {
    const button = around.querySelector(`button.${name}`);
    if (!button || button.disabled) return false;
    button.click();
    return true;
  };
  const commands = {
    Enter: (target) => {
      if (!target.matches(SECTION)) return false;
      target.click();
      return true;
    },
    " ": (target) => {
      if (commands.Enter(target)) return true;
      // On other buttons the space bar presses them.
      if (target.closest("button, summary, input, label") && !target.closest(".ew-play, .ew-pause")) return false;
      // The button is told of every change of state, a page of those that come with a frame.
      // Play is the primary button while nothing runs. The Explorer has one button for both.
      const isRunning = !around.querySelector("button.ew-play")?.classList.contains("mod-primary");
      return (isRunning && press("ew-pause")) || press("ew-play");
    },
    ArrowRight: (target) => !target.closest(USES_ARROWS) && press("ew-step"),
    f: () => {
      present(!isPresenting());
      return true;
    },
    Escape: () => {
      if (press("ew-tour-close")) return true;
      if (around.querySelector(".ew-large")) putBack();
      else if (isPresenting()) present(false);
      else return false;
      return true;
    },
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key !== "Escape" && event.target.closest(USES_LETTERS)) return;
    const command = commands[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (command?.(event.target)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };

  const greet = () => (isVisible() ? say("here") : say("gone", { hidden: true }));
  const leave = () => say("gone");
  const heartbeat = setInterval(() => {
    // Not while the chain rests: each message counts as activity of the kernel.
    if (isVisible() && model.get("is_running") && performance.now() - lastSign > SILENCE) say("here");
  }, SILENCE / 3);
  let around = null;
  let arriving = 0;
  const arrive = () => {
    name();
    watchSizes();
  };
  // Widgets come one after the other, some of them long after this one.
  const isWidget = (node) => node instanceof HTMLElement && (node.matches(".jupyter-widgets, img") || node.querySelector(".jupyter-widgets, img"));
  const arrivals = new MutationObserver((changes) => {
    if (changes.some(({ addedNodes }) => [...addedNodes].some(isWidget))) {
      cancelAnimationFrame(arriving);
      arriving = requestAnimationFrame(arrive);
    }
  });
  const watching = setTimeout(() => {
    // Once this element is on the page.
    watchPictures();
    around = root();
    if (!around) return;
    around.tabIndex = -1; // a click anywhere in it gives it the keyboard
    around.addEventListener("focusin", keepKeys);
    around.addEventListener("keydown", onKey);
    around.addEventListener("click", onClick);
    around.addEventListener("toggle", placeHelp, true);
    around.addEventListener("pointermove", onMove);
    around.addEventListener("pointerdown", leaveFigure);
    around.addEventListener("pointerleave", leaveFigure);
    for (const kind of THEME_EVENTS) around.addEventListener(kind, onTheme);
    arrivals.observe(around, { childList: true, subtree: true });
    arrive();
    markButtons();
    if (model.get("announces")) seen.observe(around);
  });
  // A chain may begin when it is first seen.
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    say("seen");
  }, { threshold: 0.3 });

  model.on("change:frame", acknowledge);
  model.on("msg:custom", download);
  model.on("msg:custom", copy);
  model.on("msg:custom", showTip);
  model.on("msg:custom", settle);
  document.addEventListener("visibilitychange", greet);
  document.addEventListener("visibilitychange", fitSoon);
  document.addEventListener("fullscreenchange", onFullscreen);
  window.addEventListener("resize", fitSoon);
  window.addEventListener("pagehide", leave);
  window.addEventListener("keydown", keepKeys, true);
  greet();

  return () => {
    clearInterval(heartbeat);
    clearTimeout(watching);
    [fitting, arriving].forEach(cancelAnimationFrame);
    letGo.disconnect();
    seen.disconnect();
    sizeWatch.disconnect();
    arrivals.disconnect();
    for (const kind of THEME_EVENTS) around?.removeEventListener(kind, onTheme);
    around?.removeEventListener("focusin", keepKeys);
    around?.removeEventListener("keydown", onKey);
    around?.removeEventListener("click", onClick);
    around?.removeEventListener("toggle", placeHelp, true);
    around?.removeEventListener("pointermove", onMove);
    around?.removeEventListener("pointerdown", leaveFigure);
    around?.removeEventListener("pointerleave", leaveFigure);
    hideTip();
    model.off("change:frame", acknowledge);
    model.off("msg:custom", download);
    model.off("msg:custom", copy);
    model.off("msg:custom", showTip);
    model.off("msg:custom", settle);
    document.removeEventListener("visibilitychange", greet);
    document.removeEventListener("visibilitychange", fitSoon);
    document.removeEventListener("fullscreenchange", onFullscreen);
    window.removeEventListener("resize", fitSoon);
    window.removeEventListener("pagehide", leave);
    window.removeEventListener("keydown", keepKeys, true);
    leave();
  };
}

export default { render };
