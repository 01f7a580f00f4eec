import type { z } from "zod";

const DECODER = new TextDecoder("utf-8", { fatal: true });
const ENCODER = new TextEncoder();

/** A message as JSON. */
export function writeJson(value: unknown): Uint8Array {
  return ENCODER.encode(JSON.stringify(value));
}

/** Undefined for what is not a message of this kind: anyone on the NATS server may send anything. */
export function readJson<Schema extends z.ZodType>(
  schema: Schema,
  data: Uint8Array,
): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(DECODER.decode(data))).data;
  } catch {
    return undefined;
  }
}
