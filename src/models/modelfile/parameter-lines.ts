import { ServiceError } from "../../errors/service-error.ts";
import { quote } from "./parse-instructions.ts";

/** A value of a PARAMETER in JSON, as Ollama has it; null says nothing. */
type ParameterValue = string | number | boolean | readonly string[] | null;

/**
 * The lines of a Modelfile for a parameter and its value.
 * @throws ServiceError invalid_parameter for a name that would not stay within its line
 */
export function parameterLines(name: string, value: ParameterValue): string[] {
  if (!/^\w+$/.test(name)) {
    throw new ServiceError(
      "invalid_parameter",
      `parameters: ${JSON.stringify(name.slice(0, 100))} is not a valid parameter name.`,
      { param: "parameters" },
    );
  }
  if (value === null) return [];
  if (typeof value === "object") return value.flatMap((item) => parameterLines(name, item));
  // Below 0 it means the daemon's own choice.
  if (name === "num_gpu") return Number(value) < 0 ? [] : [`GPU_LAYERS ${scalarText(value)}`];
  return [`PARAMETER ${name} ${scalarText(value)}`];
}

/** Quotes strings, so that a value cannot start a new line. */
function scalarText(value: string | number | boolean): string {
  return typeof value === "string" ? quote(value) : String(value);
}
