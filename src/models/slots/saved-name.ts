import { ServiceError } from "../../errors/service-error.ts";

/** Names that users give to saved prompts. */
export const SAVED_NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

/**
 * Refuses what cannot be the name of a saved prompt.
 * @param field what the client calls it
 * @throws ServiceError invalid_parameter
 */
export function assertSavedName(name: string, field: string): void {
  if (SAVED_NAME.test(name)) return;
  throw new ServiceError(
    "invalid_parameter",
    `${field} must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit.`,
    { param: field },
  );
}
