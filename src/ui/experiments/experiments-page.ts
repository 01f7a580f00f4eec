import "../../tab/older-browsers.ts";
import { toError } from "../../errors/service-error.ts";
import {
  type Experiment,
  fromFragment,
  parseExperiment,
  printExperiment,
  toFragment,
} from "../../experiments/experiments.ts";
import { byId, ExperimentForm } from "./experiment-form.ts";
import { updateAllowed } from "../page/allowed-servers.ts";
import { saveAs, takeExperiment } from "../browser.ts";
import { describeFiles, generatingModels, type EngineLocation, ExperimentRunner } from "./run-experiment.ts";
import { type NamedResult, showAlternatives, showRates, showResults } from "./show-results.ts";

/** The page under /ui/experiments/: opens, runs, compares, records and shares experiments. */

const RECORDED_NAME = "the recorded result";
const LOCATION_NAMES: Readonly<Record<EngineLocation, string>> = {
  browser: "this tab",
  daemon: "the daemon",
};

const page = {
  status: byId("status", HTMLElement),
  useGpu: byId("use-gpu", HTMLInputElement),
  problem: byId("problem", HTMLElement),
  title: byId("title", HTMLInputElement),
  model: byId("model", HTMLSelectElement),
  results: byId("results", HTMLElement),
  alternatives: byId("alternatives", HTMLElement),
  rates: byId("rates", HTMLElement),
  stop: byId("stop", HTMLButtonElement),
  open: byId("open", HTMLInputElement),
};
const form = new ExperimentForm();
const runner = new ExperimentRunner(
  (text) => (page.status.textContent = text),
  () => page.useGpu.checked,
);

let results: NamedResult[] = [];
/** Model of the opened experiment; undefined after the user chose another one. */
let recordedModel: Experiment["model"] | undefined;
let running: AbortController | undefined;

function show(): void {
  page.results.replaceChildren(
    ...showResults(results, {
      onKeep(index) {
        const chosen = results[index];
        if (chosen)
          results = [
            { ...chosen, name: RECORDED_NAME },
            ...results.filter((_, each) => each !== index && each > 0),
          ];
        recordedModel = undefined;
        show();
      },
      onToken: (position) => page.alternatives.replaceChildren(...showAlternatives(results, position)),
    }),
  );
  page.rates.replaceChildren(...(results.length > 0 ? showRates(results) : []));
  page.alternatives.replaceChildren();
}

/** Runs an action, after aborting the previous one. Shows its error, if it fails. */
async function attempt(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  running?.abort();
  const controller = new AbortController();
  running = controller;
  page.problem.textContent = "";
  page.stop.disabled = false;
  try {
    await work(controller.signal);
    page.status.textContent = "Ready";
  } catch (error) {
    page.status.textContent = controller.signal.aborted ? "Stopped" : "Ready";
    if (!controller.signal.aborted) page.problem.textContent = toError(error).message;
  } finally {
    if (running === controller) {
      running = undefined;
      page.stop.disabled = true;
    }
  }
}

async function run(locations: readonly EngineLocation[], signal: AbortSignal): Promise<void> {
  const { request } = form;
  const model = page.model.value;
  await checkModel(model);
  results = results.filter(({ name }) => name === RECORDED_NAME);
  for (const location of locations) {
    const result = await runner.run(location, model, request, signal);
    results.push({ name: LOCATION_NAMES[location], result });
    show();
  }
}

/** Warns if the model's files differ from the recorded ones. The experiment still runs. */
async function checkModel(model: string): Promise<void> {
  if (!recordedModel?.files) return;
  const expected = recordedModel.files.map(({ sha256 }) => sha256).join();
  const actual = (await describeFiles(model)).map(({ sha256 }) => sha256).join();
  if (expected !== actual)
    page.problem.textContent = `${model} has other files than the model that was recorded.`;
}

async function sweep(signal: AbortSignal): Promise<void> {
  const field = byId("sweep-field", HTMLSelectElement).value;
  const values = byId("sweep-values", HTMLInputElement)
    .value.split(",")
    .map((value) => value.trim())
    .filter((value) => value !== "");
  if (values.length === 0) throw new Error("Name the values of the sweep, separated by commas.");
  const { request } = form;
  results = [];
  for (const value of values) {
    const isModel = field === "model";
    if (!isModel && !Number.isFinite(Number(value))) throw new Error(`${value} is not a number.`);
    const model = isModel ? value : page.model.value;
    const changed = isModel ? request : { ...request, [field]: Number(value) };
    results.push({ name: `${field} ${value}`, result: await runner.run("daemon", model, changed, signal) });
    show();
  }
}

/** Returns the experiment on the page, with the first result as the recorded one. */
async function currentExperiment(): Promise<Experiment> {
  const name = page.model.value;
  const title = page.title.value.trim();
  const [first] = results;
  return {
    experiment: 1,
    ...(title !== "" && { title }),
    model: recordedModel ?? { name, files: await describeFiles(name) },
    request: form.request,
    ...(first && { result: first.result }),
  };
}

function openExperiment(experiment: Experiment): void {
  const { title = "", model, request, result } = experiment;
  page.title.value = title;
  if (![...page.model.options].some(({ value }) => value === model.name)) {
    throw new Error(
      `The daemon does not have the model ${model.name}.${model.source === undefined ? "" : ` Pull it with: daybreak pull ${model.source}`}`,
    );
  }
  page.model.value = model.name;
  form.request = request;
  recordedModel = model;
  results = result ? [{ name: RECORDED_NAME, result }] : [];
  show();
}

async function download(): Promise<void> {
  const experiment = await currentExperiment();
  const name = (experiment.title ?? "experiment").replaceAll(/[^\w-]+/g, "-").toLowerCase();
  saveAs(`${name}.json`, printExperiment(experiment));
}

async function share(): Promise<void> {
  const address = new URL(location.href);
  address.hash = await toFragment(await currentExperiment());
  history.replaceState(undefined, "", address);
  await navigator.clipboard?.writeText(address.href).catch(() => undefined);
}

function onClick(id: string, work: (signal: AbortSignal) => Promise<void>): void {
  byId(id, HTMLButtonElement).addEventListener("click", () => void attempt(work));
}

byId("experiment", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  void attempt((signal) => run(["daemon", "browser"], signal));
});
onClick("run-browser", (signal) => run(["browser"], signal));
onClick("run-daemon", (signal) => run(["daemon"], signal));
onClick("sweep", sweep);
onClick("download", download);
onClick("share", share);
page.stop.addEventListener("click", () => running?.abort());
byId("reset", HTMLButtonElement).addEventListener("click", () => {
  running?.abort();
  page.title.value = "";
  recordedModel = undefined;
  results = [];
  form.reset();
  show();
});
page.model.addEventListener("change", () => (recordedModel = undefined));
page.open.addEventListener(
  "change",
  () =>
    void attempt(async () => {
      const [file] = page.open.files ?? [];
      if (file) openExperiment(parseExperiment(await file.text()));
    }),
);

async function start(): Promise<void> {
  const models = await generatingModels();
  page.model.replaceChildren(...models.map((name) => new Option(name)));
  const handedOver = takeExperiment();
  if (handedOver !== undefined) openExperiment(parseExperiment(handedOver));
  else if (location.hash.length > 1) openExperiment(await fromFragment(location.hash.slice(1)));
}

addEventListener("hashchange", () => void attempt(start));
if (!updateAllowed()) void attempt(start);
