import { signal as value } from "@preact/signals";
import type { ListedModel } from "../daemon-api.ts";
import { refresh, showProblem } from "../page-state.ts";

/** What the room of the models is doing. */

/** A question over the page. */
type OpenDialog =
  | { readonly kind: "load" | "copy" | "delete"; readonly model: ListedModel }
  /** Without a model: a new Modelfile. */
  | { readonly kind: "modelfile"; readonly model: ListedModel | undefined };

export const openDialog = value<OpenDialog | undefined>(undefined);

/** What is being done with a model, in words, by its name. */
export const doings = value<ReadonlyMap<string, string>>(new Map());

/** Says what is done with a model while it is, and shows what fails. */
export async function doing(alias: string, what: string, action: () => Promise<void>): Promise<void> {
  doings.value = new Map([...doings.value, [alias, what]]);
  try {
    await action();
  } catch (error) {
    showProblem(error);
  } finally {
    await refresh();
    doings.value = new Map([...doings.value].filter(([name]) => name !== alias));
  }
}
