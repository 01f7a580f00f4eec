import { isRefused, natsTrouble } from "../dialects/management/nats-trouble.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { FleetConnection } from "./fleet-connection.ts";

/** For those who ask for a model while nobody can be asked. */
const RECONNECTED_AFTER_SECS = 1;
/** For those who ask for a model of a machine that is expected back: the official clients ask twice more, and until then it may have started. */
const RETURNED_AFTER_SECS = 5;

/** Others may have the model, and cannot be asked. */
export function notAsked(
  name: string | undefined,
  { isConnected, where, problem }: Pick<FleetConnection, "isConnected" | "where" | "problem">,
): ServiceError {
  const why = isConnected
    ? `has only just reached the fleet's NATS server at ${where}, so others may have it: try again in a few seconds`
    : `cannot ask the others, since the fleet's NATS server at ${where} ${natsTrouble(problem)}: ${isRefused(problem) ? "correct them" : "start it, or try again when it is back"}`;
  return unreachable(`This machine does not have ${model(name)}, and ${why}.`, RECONNECTED_AFTER_SECS);
}

/** The machine that has the model is expected back. */
export function notBack(name: string | undefined, machine: string): ServiceError {
  return unreachable(
    `The machine ${machine}, which has ${model(name)}, is starting or stopping, or has just left the fleet: try again in a few seconds.`,
    RETURNED_AFTER_SECS,
  );
}

function model(name: string | undefined): string {
  return name ? `the model "${name}"` : "a model";
}

function unreachable(message: string, retryAfterSecs: number): ServiceError {
  return new ServiceError("fleet_unreachable", message, { param: "model", retryAfterSecs });
}
