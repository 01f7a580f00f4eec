import { ServiceError } from "../errors/service-error.ts";
import { EventQueue } from "./event-queue.ts";
import type { GenerationEvent } from "./protocol/generation.ts";

/** Bytes of events that may wait for a client who reads slowly: more than a context of 100,000 tokens gives. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** About what an event takes in memory, and what each token of its log-probabilities adds. */
const EVENT_BYTES = 100;
const LOGPROB_BYTES = 400;
const ALTERNATIVE_BYTES = 150;

/** Events of one generation, from the engine to whoever reads the answer. */
export function waitingEvents(): EventQueue<GenerationEvent> {
  return new EventQueue(MAX_WAITING_BYTES, bytesOf);
}

/** Why a generation ends whose reader has fallen too far behind. */
export function readTooSlowly(): ServiceError {
  return new ServiceError(
    "overloaded",
    "The answer was read so slowly that too much of it waited to be sent; read it faster, or ask for less of it.",
  );
}

function bytesOf(event: GenerationEvent): number {
  switch (event.type) {
    case "text-delta": {
      let bytes = EVENT_BYTES + 2 * event.text.length;
      for (const { top } of event.logprobs ?? []) bytes += LOGPROB_BYTES + ALTERNATIVE_BYTES * top.length;
      return bytes;
    }
    case "reasoning-delta":
      return EVENT_BYTES + 2 * event.text.length;
    case "tool-call-delta":
      return EVENT_BYTES + 2 * event.arguments.length;
    default:
      return EVENT_BYTES;
  }
}
