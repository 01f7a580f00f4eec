// @ts-check
// The page behind /ui/. Text of a model only ever reaches the page as textContent, never as markup.

const STATUS_INTERVAL_MS = 5000;

/** @typedef {{ role: "user" | "assistant", content: string }} Message */
/** @typedef {{ alias: string, state: string, parameters: number, context_size: number, size_bytes: number, is_default: boolean }} Model */

/** @type {Message[]} */
let conversation = [];
/** @type {AbortController | undefined} */
let running;

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

const page = {
  status: element("status", HTMLElement),
  models: element("models", HTMLTableSectionElement),
  model: element("model", HTMLSelectElement),
  messages: element("messages", HTMLDivElement),
  form: element("chat", HTMLFormElement),
  prompt: element("prompt", HTMLTextAreaElement),
  send: element("send", HTMLButtonElement),
  stop: element("stop", HTMLButtonElement),
  clear: element("clear", HTMLButtonElement),
  experiment: element("experiment", HTMLButtonElement),
};

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function request(path, init) {
  const response = await fetch(path, init);
  if (response.ok) return response;
  const body = await response.json().catch(() => undefined);
  throw new Error(body?.error?.message ?? `${response.status} ${response.statusText}`);
}

/**
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} [signal]
 */
function post(path, body, signal) {
  return request(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

async function refresh() {
  try {
    const [status, list] = await Promise.all([
      request("/status").then((response) => response.json()),
      request("/api/models").then((response) => response.json()),
    ]);
    page.status.textContent =
      `${status.status}, version ${status.version}, up ${duration(status.uptime_secs)}, ` +
      `${status.models_loaded} loaded, ${status.active_requests} active`;
    showModels(list.models);
  } catch (error) {
    page.status.textContent = `Not reachable: ${message(error)}`;
  }
}

/** @param {Model[]} models */
function showModels(models) {
  page.models.replaceChildren(...models.map(modelRow));
  const chosen = page.model.value;
  const loaded = models.filter((model) => model.state === "loaded");
  page.model.replaceChildren(...loaded.map((model) => new Option(model.alias, model.alias)));
  const wanted = loaded.find((model) => model.alias === chosen) ?? loaded.find((model) => model.is_default);
  if (wanted) page.model.value = wanted.alias;
}

/** @param {Model} model */
function modelRow(model) {
  const row = document.createElement("tr");
  const cells = [
    model.is_default ? `${model.alias} (default)` : model.alias,
    model.state,
    quantity(model.parameters, ""),
    String(model.context_size),
    quantity(model.size_bytes, "B"),
  ];
  for (const text of cells) row.insertCell().textContent = text;
  const action = row.insertCell();
  if (model.state === "loaded" || model.state === "available") action.append(modelButton(model));
  return row;
}

/** @param {Model} model */
function modelButton(model) {
  const button = document.createElement("button");
  const loaded = model.state === "loaded";
  button.textContent = loaded ? "Unload" : "Load";
  button.addEventListener("click", () => {
    button.disabled = true;
    void toggle(model.alias, loaded);
  });
  return button;
}

/**
 * @param {string} alias
 * @param {boolean} loaded
 */
async function toggle(alias, loaded) {
  try {
    if (loaded) await request(`/api/models/${encodeURIComponent(alias)}/unload`, { method: "POST" });
    else await post("/api/models/load", { alias });
  } catch (error) {
    addMessage("error", message(error));
  }
  await refresh();
}

/**
 * @param {string} kind
 * @param {string} text
 */
function addMessage(kind, text) {
  const box = document.createElement("div");
  box.className = `message ${kind}`;
  box.textContent = text;
  page.messages.append(box);
  box.scrollIntoView({ block: "nearest" });
  return box;
}

/** @param {string} text */
async function send(text) {
  conversation.push({ role: "user", content: text });
  addMessage("user", text);
  const box = addMessage("assistant", "");
  const thinking = document.createElement("em");
  const content = document.createElement("span");
  box.append(thinking, content);
  let answer = "";
  running = new AbortController();
  setBusy(true);
  try {
    const body = { model: page.model.value || undefined, messages: conversation, stream: true };
    const response = await post("/api/chat", body, running.signal);
    for await (const line of jsonLines(response)) {
      if (line.error) throw new Error(line.error.message);
      answer += line.message?.content ?? "";
      thinking.textContent += line.message?.thinking ?? "";
      content.textContent = answer;
      if (line.done) addSummary(box, line);
    }
  } catch (error) {
    if (!running.signal.aborted) addMessage("error", message(error));
  } finally {
    running = undefined;
    setBusy(false);
  }
  if (answer === "") conversation.pop();
  else conversation.push({ role: "assistant", content: answer });
}

/**
 * @param {HTMLElement} box
 * @param {{ completion_tokens: number, total_duration_ms: number, tokens_per_second?: number }} line
 */
function addSummary(box, line) {
  const summary = document.createElement("small");
  const speed = line.tokens_per_second === undefined ? "" : `, ${line.tokens_per_second.toFixed(1)} tokens/s`;
  summary.textContent = `${line.completion_tokens} tokens in ${(line.total_duration_ms / 1000).toFixed(1)} s${speed}`;
  box.append(summary);
}

/**
 * The objects of a stream of newline-delimited JSON.
 * @param {Response} response
 */
async function* jsonLines(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}

/** @param {boolean} busy */
function setBusy(busy) {
  page.send.disabled = busy;
  page.stop.disabled = !busy;
  page.clear.disabled = busy;
}

/** @param {unknown} error */
function message(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {number} seconds */
function duration(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}

/**
 * @param {number} value
 * @param {string} unit
 */
function quantity(value, unit) {
  const format = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  return `${format.format(value)}${unit}`;
}

page.form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = page.prompt.value.trim();
  if (text === "" || running) return;
  page.prompt.value = "";
  void send(text);
});
page.prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  page.form.requestSubmit();
});
page.stop.addEventListener("click", () => running?.abort());
page.clear.addEventListener("click", () => {
  conversation = [];
  page.messages.replaceChildren();
});
page.experiment.addEventListener("click", () => {
  const last = conversation.findLastIndex(({ role }) => role === "user");
  const messages =
    last < 0 ? [{ role: "user", content: page.prompt.value }] : conversation.slice(0, last + 1);
  const experiment = { experiment: 1, model: { name: page.model.value }, request: { messages } };
  sessionStorage.setItem("daybreak-experiment", JSON.stringify(experiment));
  location.href = "/ui/experiments/";
});

await refresh();
setInterval(() => void refresh(), STATUS_INTERVAL_MS);
