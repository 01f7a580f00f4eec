import { computed, signal as value } from "@preact/signals";
import { toError } from "../errors/to-error.ts";
import { askHealth, DaemonUnreachable, isLocked, type ListedModel, listModels } from "./daemon-api.ts";
import { chosenDaemon } from "./daemons.ts";
import { joinModels, listedStored } from "./stored-models.ts";

/** What all rooms of the page show and share. */

/** How the page and its daemon are. */
type Connection =
  | { readonly state: "connecting" | "connected" | "starting" | "draining" }
  /** The page uses none. */
  | { readonly state: "none" }
  /** It wants an API key that nobody has given. */
  | { readonly state: "locked" }
  /** `why` where there is more to say than that it cannot be reached. */
  | { readonly state: "away"; readonly since: Date; readonly why: string | undefined };

const ofDaemon = value<readonly ListedModel[]>([]);

export const connection = value<Connection>({ state: "connecting" });

/** The models of the daemon, and those that this browser has stored. */
export const models = computed(() =>
  joinModels(ofDaemon.value, listedStored.value, connection.value.state === "away"),
);

/** What is wrong, in words for people; empty: nothing. */
export const problem = value("");

/** What the page is doing; empty: nothing that a person waits for. */
export const activity = value("");

/** One line below the name of the page. */
export const status = computed(() => activity.value || describe(connection.value));

/** Whether that line says nothing but that all is well. */
export const isIdle = computed(() => activity.value === "" && connection.value.state === "connected");

function describe({ state }: Connection): string {
  const name = chosenDaemon()?.name ?? "";
  switch (state) {
    case "connecting":
      return "Connecting …";
    case "none":
      return "Models run in this browser";
    case "locked":
      return `${name} wants an API key`;
    case "away":
      return `${name} is away`;
    default:
      return `Connected to ${name}`;
  }
}

export function showProblem(error: unknown): void {
  problem.value = toError(error).message;
}

/** Reads what the daemon has. */
export async function refresh(): Promise<void> {
  if (!chosenDaemon()) {
    connection.value = { state: "none" };
    return;
  }
  try {
    const [health, list] = await Promise.all([askHealth(), listModels()]);
    ofDaemon.value = list;
    connection.value = { state: health === "ok" ? "connected" : health };
  } catch (error) {
    // The engine of this tab goes on without the daemon.
    connection.value = isLocked(error) ? { state: "locked" } : away(error);
  }
}

function away(error: unknown): Connection {
  const before = connection.value;
  const since = before.state === "away" ? before.since : new Date();
  if (error instanceof DaemonUnreachable)
    return { state: "away", since, why: error.isRefusal ? error.message : undefined };
  const why = `What answers at this address is no daemon, or one of another version: ${toError(error).message}`;
  return { state: "away", since, why };
}
