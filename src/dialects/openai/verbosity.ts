import { ignored } from "../../http/input/known-fields.ts";

/** How long an answer is to be, which only models that were trained for it know. */
export const verbosityField = ignored(
  "no model here was trained for it; low and high are told in the header x-daybreak-warning",
);

/** What is told of a wish that is not followed. */
export function unheardVerbosity(verbosity: unknown): string[] {
  if (verbosity !== "low" && verbosity !== "high") return [];
  return ["verbosity is not followed: say in the prompt how long the answer is to be"];
}
