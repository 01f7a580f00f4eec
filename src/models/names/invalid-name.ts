import { ServiceError } from "../../errors/service-error.ts";

/** Longest part of a name that an error repeats. */
const SHOWN_LENGTH = 100;

/** The error for text that cannot name a model; `why` is a sentence without its full stop. */
export function invalidName(name: string, why: string): ServiceError {
  const shown = name.length > SHOWN_LENGTH ? `${name.slice(0, SHOWN_LENGTH)}…` : name;
  return new ServiceError("invalid_model_name", `${JSON.stringify(shown)} names no model: ${why}.`);
}
