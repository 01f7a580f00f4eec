/** Key in sessionStorage through which the chat passes a request to the experiments page. */
const STORAGE_KEY = "daybreak-experiment";

/** Opens the experiments page with a request. */
export function openAsExperiment(model: string, request: object): void {
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ experiment: 1, model: { name: model }, request }));
  location.href = "experiments/";
}

/** Returns the experiment that the chat passed, as JSON, and deletes it. */
export function takeExperiment(): string | undefined {
  const stored = sessionStorage.getItem(STORAGE_KEY) ?? undefined;
  sessionStorage.removeItem(STORAGE_KEY);
  return stored;
}
