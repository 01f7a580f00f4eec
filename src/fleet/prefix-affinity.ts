import { createHash } from "node:crypto";
import type { InferenceRequest } from "../inference/inference.ts";

/** A plain prompt is marked after so many characters, and again. */
const BLOCK_CHARACTERS = 512;
/** Of one prompt; a beginning that is longer is as good as another one. */
const MAX_MARKS = 256;
/** Reading a shorter beginning again takes less than finding out who knows it. */
const LEAST_CHARACTERS = 256;
/** Marks that are remembered, a hundred bytes each. */
const MAX_REMEMBERED = 50_000;

/** A beginning of a prompt. */
export interface PrefixHash {
  /** SHA-256 of the model and all up to here. */
  readonly hash: string;
  readonly characters: number;
}

/** Remembers which machine has read which beginnings of prompts: it has them in its prompt store. */
export class PromptMemory {
  readonly #machines = new Map<string, string>();

  /** @param machine its id */
  remember(marks: readonly PrefixHash[], machine: string): void {
    for (const { hash } of marks) {
      // The one that was set last is removed last.
      this.#machines.delete(hash);
      this.#machines.set(hash, machine);
    }
    for (const hash of this.#machines.keys()) {
      if (this.#machines.size <= MAX_REMEMBERED) return;
      this.#machines.delete(hash);
    }
  }

  /** How many characters of a prompt each machine has read before. */
  known(marks: readonly PrefixHash[]): ReadonlyMap<string, number> {
    const known = new Map<string, number>();
    for (const { hash, characters } of marks) {
      const machine = this.#machines.get(hash);
      if (machine !== undefined && characters >= LEAST_CHARACTERS) known.set(machine, characters);
    }
    return known;
  }
}

/**
 * The beginnings of a request's prompt, from the shortest: of a chat after each message, of a text after each block.
 * @param model what identifies it
 */
export function prefixHashes(model: string, { input }: Pick<InferenceRequest, "input">): PrefixHash[] {
  const prompt = input.kind === "chat" ? "" : input.kind === "infill" ? input.prefix : input.prompt;
  if (input.kind !== "chat" && prompt.length < BLOCK_CHARACTERS) return [];
  const hash = createHash("sha256").update(model);
  const marks: PrefixHash[] = [];
  let characters = 0;
  const add = (text: string | Uint8Array): void => {
    hash.update(text).update("\0");
    characters += text.length;
  };
  const mark = (): void => {
    if (marks.length < MAX_MARKS) marks.push({ hash: hash.copy().digest("base64"), characters });
  };
  if (input.kind === "chat") {
    add(JSON.stringify(input.tools));
    for (const { content, ...message } of input.messages) {
      add(JSON.stringify(message));
      for (const part of content) add(part.type === "text" ? part.text : part.data);
      mark();
    }
    return marks;
  }
  if (input.kind === "instruct" && input.system !== undefined) add(input.system);
  for (
    let at = 0;
    at + BLOCK_CHARACTERS <= prompt.length && marks.length < MAX_MARKS;
    at += BLOCK_CHARACTERS
  ) {
    add(prompt.slice(at, at + BLOCK_CHARACTERS));
    mark();
  }
  return marks;
}
