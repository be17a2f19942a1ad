// The button "Submit as job" in the toolbar of a notebook in JupyterLab. JupyterLab loads this file as a container of
// module federation: `init` gets the modules that JupyterLab shares, `get` returns the plugin. There is no build step.
(() => {
  "use strict";
  const NAME = "hekla-submit";
  const FIELDS = [
    ["name", "Name", "as the notebook"],
    ["queue", "Queue", "as this session's job"],
    ["cpus", "CPUs", "as this session's job"],
    ["memory", "Memory", "as this session's job"],
    ["gpus", "GPUs", "as this session's job"],
    ["image", "Image", "as this session's job"],
  ];
  let shared = {};
  let texts = {};
  const translate = (english) => texts[english] ?? english;

  async function load(name) {
    const versions = Object.values(shared[name] ?? {});
    if (!versions.length) throw new Error(`JupyterLab does not share ${name}.`);
    return (await versions[0].get())();
  }

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function makeForm(values, problem) {
    const inputs = FIELDS.map(([name, , placeholder]) =>
      element("input", { name, placeholder: translate(placeholder), className: "jp-mod-styled", value: values[name] ?? "" }),
    );
    const rows = FIELDS.map(([, label], place) =>
      element("label", { style: "display: grid; gap: 2px; margin-bottom: 8px" }, translate(label), inputs[place]),
    );
    const text = element("p", { textContent: problem, style: "white-space: pre-wrap; max-width: 60ch" });
    if (problem) text.setAttribute("role", "alert");
    const node = element("div", {}, text, ...rows);
    const read = () => Object.fromEntries(inputs.map((input) => [input.name, input.value.trim()]));
    return { node, read };
  }

  async function send(services, body) {
    const settings = services.ServerConnection.makeSettings();
    const request = body ? { method: "POST", body: JSON.stringify(body) } : {};
    const response = await services.ServerConnection.makeRequest(`${settings.baseUrl}hekla/submit`, request, settings);
    const found = await response.json();
    if (!response.ok) throw new Error(found.message || response.statusText);
    return found;
  }

  async function submit(context, { apputils, services, widgets }) {
    await context.save();
    let values = {};
    let problem = "";
    for (;;) {
      const form = makeForm(values, problem);
      const body = new widgets.Widget({ node: form.node });
      body.getValue = form.read;
      const cancel = apputils.Dialog.cancelButton({ label: translate("Cancel") });
      const buttons = [cancel, apputils.Dialog.okButton({ label: translate("Submit") })];
      const result = await apputils.showDialog({ title: translate("Submit as job"), body, buttons });
      if (!result.button.accept) return;
      values = result.value;
      try {
        const job = await send(services, { path: context.path, ...values });
        const link = element("a", { href: job.url, textContent: job.name, target: "_blank", rel: "noopener" });
        const done = new widgets.Widget({ node: element("div", {}, link) });
        const close = apputils.Dialog.okButton({ label: translate("OK") });
        await apputils.showDialog({ title: translate("Submitted"), body: done, buttons: [close] });
        return;
      } catch (error) {
        problem = error.message;
      }
    }
  }

  async function makePlugin() {
    const names = ["@jupyterlab/apputils", "@jupyterlab/services", "@lumino/widgets"];
    const [apputils, services, widgets] = await Promise.all(names.map(load));
    texts = await send(services).catch(() => ({}));
    const createNew = (panel, context) => {
      const onClick = () => submit(context, { apputils, services, widgets });
      const tooltip = translate("Submit this notebook as a job");
      const button = new apputils.ToolbarButton({ label: translate("Submit as job"), tooltip, onClick });
      panel.toolbar.insertAfter("cellType", NAME, button) || panel.toolbar.addItem(NAME, button);
      return button;
    };
    return {
      id: `${NAME}:plugin`,
      autoStart: true,
      activate: (app) => void app.docRegistry.addWidgetExtension("Notebook", { createNew }),
    };
  }

  (window._JUPYTERLAB ??= {})[NAME] = {
    init: (scope) => void (shared = scope),
    get: async () => {
      const plugin = await makePlugin();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
