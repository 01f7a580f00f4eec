import { resolvePath } from "../launch/resolve-path.mjs";
import type { ConfigOption } from "./config-options.ts";
import { readNumber } from "./read-number.ts";

/** Text that does not fit the option's type stays text, which the schema then refuses. */
export function fromText(option: ConfigOption, text: string): unknown {
  const trimmed = text.trim();
  switch (option.kind) {
    case "integer":
      return /^-?\d+$/.test(trimmed) ? Number(trimmed) : text;
    case "number":
      return readNumber(trimmed) ?? text;
    case "boolean":
      if (/^(true|1|yes|on)$/i.test(trimmed)) return true;
      return /^(false|0|no|off)$/i.test(trimmed) ? false : text;
    case "list":
      return splitList(text);
    case "enum":
    case "duration":
      return trimmed;
    default:
      return text;
  }
}

export function splitList(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** A path begins with ~, and the account has no home folder. */
export class NoHomeError extends Error {
  override readonly name = "NoHomeError";
}

/**
 * Resolves a path relative to `folder`; a tilde is the home folder. Named pipes are not paths.
 * @throws NoHomeError
 */
export function resolvePaths(given: unknown, folder: string): unknown {
  const resolve = (value: unknown): unknown => {
    if (typeof value !== "string" || value === "" || value.startsWith("\\\\.\\pipe\\")) return value;
    const resolved = resolvePath(value, folder);
    if (resolved === undefined) throw new NoHomeError();
    return resolved;
  };
  return Array.isArray(given) ? given.map(resolve) : resolve(given);
}
