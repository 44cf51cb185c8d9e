// A button that sends one file, unless it is too large: that would break the connection to the kernel.

function render({ model, el }) {
  const input = document.createElement("input");
  const button = document.createElement("button");
  input.type = "file";
  input.accept = model.get("accept");
  input.hidden = true;
  button.type = "button";
  button.className = "jupyter-widgets jupyter-button widget-button";
  const label = () => {
    button.textContent = model.get("label");
    button.title = model.get("hint");
    input.setAttribute("aria-label", model.get("label"));
  };
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", async () => {
    const file = input.files[0];
    input.value = "";
    if (!file) return;
    if (file.size > model.get("largest")) {
      model.send({ kind: "too-large", name: file.name, size: file.size });
    } else {
      model.send({ kind: "file", name: file.name }, undefined, [await file.arrayBuffer()]);
    }
  });
  model.on("change:label", label);
  label();
  el.append(button, input);
}

export default { render };
