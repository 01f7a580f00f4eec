import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../../src/engine/engine.ts";
import type { GenerationRequest } from "../../../src/engine/protocol/generation.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { collect, doneOf, textOf } from "../engine-fixture.ts";
import type { Form } from "./forms.ts";
import { generated } from "../generated.ts";

/** How one answer under a form ended. */
export type Outcome =
  | { readonly kind: "right" | "cut" | "wrong"; readonly text: string }
  | { readonly kind: "refused" | "failed" | "leaked"; readonly message: string }
  | { readonly kind: "hung" };

/** Longer than any of these answers takes on a busy machine. */
const HANGS_AFTER_MS = 60_000;

/** Words of llama.cpp, of its JSON library and of V8, which no client should read. */
const FOREIGN_WORDS = /exception|json\.|peg-native|grammar stack|got |RangeError|call stack|std::/;

/** Asks for an answer and waits for its end; one that does not come is given up after a while. */
export async function outcomeOf(engine: Engine, form: Form, request: GenerationRequest): Promise<Outcome> {
  const given = new AbortController();
  const clock = new AbortController();
  const hung = sleep(HANGS_AFTER_MS, { kind: "hung" } as const, { signal: clock.signal });
  try {
    return await Promise.race([answer(engine, form, request, given.signal), hung]);
  } finally {
    clock.abort();
    hung.catch(() => {});
    given.abort();
  }
}

async function answer(
  engine: Engine,
  { isRight }: Form,
  request: GenerationRequest,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    const events = await collect(generated(engine, request, signal));
    const text = textOf(events);
    if (doneOf(events).reason === "length") return { kind: "cut", text };
    return { kind: isRight(text) ? "right" : "wrong", text };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, message } = error;
    if (FOREIGN_WORDS.test(message)) return { kind: "leaked", message };
    return { kind: code === "inference_failed" ? "failed" : "refused", message: `${code}: ${message}` };
  }
}
