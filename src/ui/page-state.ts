import { computed, signal as value } from "@preact/signals";
import { toError } from "../errors/to-error.ts";
import { type ListedModel, listModels } from "./daemon-api.ts";

/** What all rooms of the page show and share. */

export const models = value<readonly ListedModel[]>([]);

/** What is wrong, in words for people; empty: nothing. */
export const problem = value("");

/** What the page is doing; empty: nothing that a person waits for. */
export const activity = value("");

const connection = value("Connecting …");

/** One line below the name of the page. */
export const status = computed(() => activity.value || connection.value);

export function showProblem(error: unknown): void {
  problem.value = toError(error).message;
}

/** Reads what the daemon has. */
export async function refresh(): Promise<void> {
  try {
    models.value = await listModels();
    connection.value = `Connected to ${location.host}`;
  } catch (error) {
    // The engine of this tab goes on without the daemon.
    connection.value = toError(error).message;
  }
}
