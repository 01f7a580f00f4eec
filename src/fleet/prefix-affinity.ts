import { createHash } from "node:crypto";
import type { InferenceRequest } from "../inference/inference.ts";

/** Characters between two hashes of a plain prompt. */
const BLOCK_CHARACTERS = 512;
/** Maximum hashes of one prompt. */
const MAX_HASHES = 256;
/** Shorter prefixes are not worth choosing a machine for. */
const MIN_CHARACTERS = 256;
/** Maximum remembered hashes, of about a hundred bytes each. */
const MAX_STORED_HASHES = 50_000;

/** Prefix of a prompt. */
export interface PrefixHash {
  /** SHA-256 of the model and the text of the prefix. */
  readonly hash: string;
  readonly characters: number;
}

/** Remembers which machine processed which prompt prefixes, and so has them in its prompt cache. */
export class PrefixAffinity {
  readonly #machineByHash = new Map<string, string>();

  /** @param machine machine id */
  record(hashes: readonly PrefixHash[], machine: string): void {
    for (const { hash } of hashes) {
      // Keeps the map in order of use.
      this.#machineByHash.delete(hash);
      this.#machineByHash.set(hash, machine);
    }
    for (const hash of this.#machineByHash.keys()) {
      if (this.#machineByHash.size <= MAX_STORED_HASHES) return;
      this.#machineByHash.delete(hash);
    }
  }

  /** Returns the number of characters of a prompt that each machine has processed before. */
  known(hashes: readonly PrefixHash[]): ReadonlyMap<string, number> {
    const known = new Map<string, number>();
    for (const { hash, characters } of hashes) {
      const machine = this.#machineByHash.get(hash);
      if (machine !== undefined && characters >= MIN_CHARACTERS) known.set(machine, characters);
    }
    return known;
  }
}

/**
 * Returns the hashes of a prompt's prefixes, shortest first: after each message of a chat, after each block of a text.
 * @param model identity of the model
 */
export function prefixHashes(model: string, { input }: Pick<InferenceRequest, "input">): PrefixHash[] {
  const prompt = input.kind === "chat" ? "" : input.kind === "infill" ? input.prefix : input.prompt;
  if (input.kind !== "chat" && prompt.length < BLOCK_CHARACTERS) return [];
  const hash = createHash("sha256").update(model);
  const hashes: PrefixHash[] = [];
  let characters = 0;
  const add = (text: string | Uint8Array): void => {
    hash.update(text).update("\0");
    characters += text.length;
  };
  const addHash = (): void => {
    if (hashes.length < MAX_HASHES) hashes.push({ hash: hash.copy().digest("base64"), characters });
  };
  if (input.kind === "chat") {
    add(JSON.stringify(input.tools));
    for (const { content, ...message } of input.messages) {
      add(JSON.stringify(message));
      for (const part of content) add(part.type === "text" ? part.text : part.data);
      addHash();
    }
    return hashes;
  }
  if (input.kind === "instruct" && input.system !== undefined) add(input.system);
  for (
    let at = 0;
    at + BLOCK_CHARACTERS <= prompt.length && hashes.length < MAX_HASHES;
    at += BLOCK_CHARACTERS
  ) {
    add(prompt.slice(at, at + BLOCK_CHARACTERS));
    addHash();
  }
  return hashes;
}
