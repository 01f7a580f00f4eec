import { effect, signal } from "@preact/signals";
import { z } from "zod";

/**
 * Reads JSON from the browser's storage.
 * @param storage a function, since reading localStorage throws in browsers that store nothing
 * @returns the fallback if there is no valid value
 */
export function readStored<Schema extends z.ZodType>(
  storage: () => Storage,
  key: string,
  schema: Schema,
  fallback: z.output<Schema>,
): z.output<Schema> {
  try {
    return schema.parse(JSON.parse(storage().getItem(key) ?? ""));
  } catch {
    return fallback;
  }
}

/** Returns a list that is saved in localStorage. An invalid stored value is replaced by an empty list. */
export function storedList<Schema extends z.ZodType>(key: string, schema: Schema) {
  const list = signal<readonly z.output<Schema>[]>(readStored(() => localStorage, key, z.array(schema), []));
  effect(() => localStorage.setItem(key, JSON.stringify(list.value)));
  return list;
}

/** Key in sessionStorage through which the chat passes a request to the experiments page. */
const EXPERIMENT_KEY = "daybreak-experiment";

/** Opens the experiments page with a request. */
export function openAsExperiment(model: string, request: object): void {
  sessionStorage.setItem(EXPERIMENT_KEY, JSON.stringify({ experiment: 1, model: { name: model }, request }));
  location.href = "experiments/";
}

/** Returns the experiment that the chat passed, as JSON, and deletes it. */
export function takeExperiment(): string | undefined {
  const stored = sessionStorage.getItem(EXPERIMENT_KEY) ?? undefined;
  sessionStorage.removeItem(EXPERIMENT_KEY);
  return stored;
}

/** The browser may still read the blob after the click. */
const URL_LIFETIME_MS = 60_000;

/** Downloads JSON text as a file. */
export function saveAs(name: string, text: string): void {
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), URL_LIFETIME_MS);
}

/** Creates an element with properties and children. Text becomes text nodes. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

/** Lower bounds of the probabilities of each shade. */
const SHADES = [0.2, 0.5, 0.8, 0.95];

/** Returns the CSS class for a token: shade-0 for unlikely tokens, up to shade-4 for likely ones. */
export function shadeClass(logprob: number): string {
  return `shade-${SHADES.filter((bound) => Math.exp(logprob) >= bound).length}`;
}
