/** A call as written by the model: its name, and its arguments as JSON text. */
interface WrittenCall {
  readonly name: string;
  readonly arguments: string;
}

/**
 * Parses the text between call tags: a JSON object with `name` and `arguments` (Llama: `parameters`), or an array of such
 * objects (Mistral). Undefined if it is neither.
 */
export function parseToolCalls(body: string): readonly WrittenCall[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const calls = (Array.isArray(value) ? value : [value]).map(readCall);
  return calls.length > 0 && calls.every((call) => call !== undefined) ? calls : undefined;
}

function readCall(value: unknown): WrittenCall | undefined {
  if (!isRecord(value)) return undefined;
  const name = value["name"];
  if (typeof name !== "string" || name === "") return undefined;
  const written = value["arguments"] ?? value["parameters"] ?? {};
  // Some models write the arguments as a string with JSON.
  if (typeof written === "string") return { name, arguments: written };
  return { name, arguments: JSON.stringify(written) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
