/** Where the chat leaves a request that shall become an experiment. */
const PLACE = "daybreak-experiment";

/** Opens the page of experiments with a request to a model. */
export function openAsExperiment(model: string, request: object): void {
  sessionStorage.setItem(PLACE, JSON.stringify({ experiment: 1, model: { name: model }, request }));
  location.href = "experiments/";
}

/** The text of the experiment that was left, once. */
export function takeExperiment(): string | undefined {
  const left = sessionStorage.getItem(PLACE) ?? undefined;
  sessionStorage.removeItem(PLACE);
  return left;
}
