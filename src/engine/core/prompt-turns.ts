import { Mutex } from "../../async/mutex.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import type { RoomShare, SharedRoom } from "./shared-room.ts";

type OnEvent = (event: GenerationEvent) => void;

/** Prompts that wait for each other, and for room where slots share a context. */
export class PromptTurns {
  readonly #prompts = new Mutex();
  readonly #room: SharedRoom | undefined;
  readonly #count: (text: string, signal: AbortSignal) => Promise<number>;

  /**
   * @param room of a context that slots share
   * @param count tells how many tokens a text has
   */
  constructor(room: SharedRoom | undefined, count: (text: string, signal: AbortSignal) => Promise<number>) {
    this.#room = room;
    this.#count = count;
  }

  /**
   * Runs a generation, where slots share a context only when no other reads its prompt: llama.cpp makes room for a prompt by
   * clearing idle slots, but not a slot whose request has not started yet, so with two new prompts at the same time, all requests
   * could fail for lack of room.
   */
  async generate(
    run: (onEvent: OnEvent) => Promise<void>,
    onEvent: OnEvent,
    signal: AbortSignal,
  ): Promise<void> {
    if (!this.#room) return await run(onEvent);
    using lock = await this.#prompts.lock(signal);
    await run((event) => {
      if (isPromptDone(event)) lock[Symbol.dispose]();
      onEvent(event);
    });
  }

  /** Keeps other prompts from being read until this is disposed of. */
  alone(signal: AbortSignal): Promise<Disposable> {
    return this.#prompts.lock(signal);
  }

  /** Waits for room in a context that slots share. */
  async enter(
    prompt: string,
    maxTokens: number | undefined,
    signal: AbortSignal,
  ): Promise<RoomShare | undefined> {
    if (!this.#room) return undefined;
    const promptTokens = this.#room.isEmpty ? 0 : await this.#count(prompt, signal);
    return await this.#room.enter({ promptTokens, maxTokens, signal });
  }
}

/** True for events after the whole prompt has been read. */
function isPromptDone(event: GenerationEvent): boolean {
  return event.type === "prompt-progress" ? event.processed >= event.total : event.type !== "start";
}
