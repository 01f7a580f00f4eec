import { computed, signal } from "@preact/signals";
import { toError } from "../errors/service-error.ts";
import { DaemonUnreachable, fetchHealth, hasCode, type ListedModel, listModels } from "./daemon-api.ts";
import { chosenDaemon } from "./daemons.ts";
import { joinModels, listedStoredModels } from "./stored-models.ts";

/** State that all views of the page share. */

type Connection =
  | { readonly state: "connecting" | "connected" | "starting" | "draining" }
  /** The page uses no daemon. */
  | { readonly state: "none" }
  /** The daemon requires an API key that the user has not entered. */
  | { readonly state: "locked" }
  /** The daemon is unreachable; `why` has details if they are known. */
  | { readonly state: "unreachable"; readonly since: Date; readonly why: string | undefined };

const daemonModels = signal<readonly ListedModel[]>([]);

export const connection = signal<Connection>({ state: "connecting" });

/** The models of the daemon and those stored in this browser. */
export const models = computed(() =>
  joinModels(daemonModels.value, listedStoredModels.value, connection.value.state === "unreachable"),
);

/** Error message for the user, or empty. */
export const problem = signal("");

/** Running activity that the user waits for, or empty. */
export const activity = signal("");

/** Status line in the header. */
export const status = computed(() => activity.value || describeConnection(connection.value));

/** True if the status line only says that the daemon is connected. */
export const isIdle = computed(() => activity.value === "" && connection.value.state === "connected");

function describeConnection({ state }: Connection): string {
  const name = chosenDaemon()?.name ?? "";
  switch (state) {
    case "connecting":
      return "Connecting …";
    case "none":
      return "Models run in this browser";
    case "locked":
      return `${name} wants an API key`;
    case "unreachable":
      return `${name} is unreachable`;
    default:
      return `Connected to ${name}`;
  }
}

export function showProblem(error: unknown): void {
  problem.value = toError(error).message;
}

/** Reads the state and the models of the daemon. */
export async function refresh(): Promise<void> {
  if (!chosenDaemon()) {
    connection.value = { state: "none" };
    return;
  }
  try {
    const [health, list] = await Promise.all([fetchHealth(), listModels()]);
    daemonModels.value = list;
    connection.value = { state: health === "ok" ? "connected" : health };
  } catch (error) {
    // The engine of this tab works without the daemon.
    connection.value = hasCode(error, "unauthorized") ? { state: "locked" } : unreachable(error);
  }
}

function unreachable(error: unknown): Connection {
  const before = connection.value;
  const since = before.state === "unreachable" ? before.since : new Date();
  if (error instanceof DaemonUnreachable)
    return { state: "unreachable", since, why: error.isForbidden ? error.message : undefined };
  const why = `What answers at this address is no daemon, or one of another version: ${toError(error).message}`;
  return { state: "unreachable", since, why };
}

/** Copies a text to the clipboard. Browsers allow that only on localhost and over HTTPS. */
export function copyText(text: string): void {
  const { clipboard } = navigator as { readonly clipboard?: Clipboard };
  if (clipboard) clipboard.writeText(text).catch(showProblem);
  else showProblem(new Error("The browser lets a page copy only on localhost and over HTTPS."));
}
