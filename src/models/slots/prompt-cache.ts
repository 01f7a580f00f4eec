import type { SlotState } from "../../engine/engine-slots.ts";
import type { Engine } from "../../engine/engine.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ModelsOptions } from "../models-options.ts";
import { headerOf, type ModelSlots } from "./model-slots.ts";
import { SavedFolder } from "./saved-folder.ts";
import type { SavedHeader } from "./saved-header.ts";
import { identityFiles, isSameIdentity } from "./slot-identity.ts";

/** Maximum conversations that are saved automatically per model. */
const MAX_SAVED_CONVERSATIONS = 16;

/** Last tokens in which a conversation may differ from its continuation: templates end a last answer differently. */
const ENDING_TOKENS = 16;

/** Maximum time for saving or restoring all slots when a model is unloaded or loaded. */
const MAX_WAIT_MS = 15_000;

/** Time after which an engine is considered hung; on a busy machine, a healthy one may need seconds. */
const ENGINE_TIMEOUT_MS = 10_000;

/** Minimum tokens of a saved prompt: the prefill of a shorter one is as fast as restoring it. */
const MIN_TOKENS = 16;

/** Maximum bytes of a state: an engine copies it in memory to save it, which other models may need. */
const MAX_STATE_BYTES = 1024 ** 3;

interface Conversation extends Pick<SlotState, "scales"> {
  readonly tokens: Int32Array;
}

/**
 * Saves the slots of a model that is unloaded, and restores them when it is loaded again. Errors are only logged: a
 * prompt that cannot be saved or restored is processed again.
 */
export class PromptCache {
  readonly #slots: ModelSlots;
  readonly #folder: SavedFolder;
  readonly #logger: ModelsOptions["logger"];

  constructor(slots: ModelSlots, folder: SavedFolder, logger: ModelsOptions["logger"]) {
    this.#slots = slots;
    this.#folder = folder;
    this.#logger = logger;
  }

  /** Saves the idle slots of an engine, and removes earlier versions of their conversations. */
  async save(alias: string, engine: Engine): Promise<void> {
    await this.#attempt("save", alias, async (signal) => {
      const engineSlots = this.#slots.slotsOf(engine);
      const timeout = AbortSignal.any([signal, AbortSignal.timeout(ENGINE_TIMEOUT_MS)]);
      const used = (await engineSlots.list(timeout)).filter(
        ({ tokens, isBusy }) => !isBusy && tokens >= MIN_TOKENS,
      );
      if (used.length === 0) return;
      const identity = await this.#slots.identityOf(engine, signal);
      const current = new Map<string, Conversation>();
      // The slot used last is saved last, so that its file is the newest.
      for (const { id } of used.toSorted((a, b) => a.lastUsed - b.lastUsed)) {
        const save = engineSlots.save(
          id,
          async (state) => {
            const name = SavedFolder.automaticName(state);
            current.set(name, state);
            const header = headerOf(identity, engine, state);
            if (!(await this.#isSavedAlready(alias, name, header)))
              await this.#folder.write(alias, name, header, state);
          },
          { maxBytes: MAX_STATE_BYTES, signal },
        );
        await save.catch((error: unknown) => this.#log("save", alias, error));
      }
      await this.#removeOutdated(alias, current);
    });
  }

  /** Removes saved conversations that the current ones continue, and the oldest ones beyond the maximum. */
  async #removeOutdated(alias: string, current: ReadonlyMap<string, Conversation>): Promise<void> {
    const saved = (await this.#folder.list(alias)).filter(({ isAutomatic }) => isAutomatic);
    for (const [rank, { name, header }] of saved.entries()) {
      if (current.has(name)) continue;
      const isOutdated = async (): Promise<boolean> => {
        const tokens = await this.#folder.tokens(alias, name).catch(() => undefined);
        if (tokens === undefined) return true;
        const older = { tokens, scales: header?.scales ?? [] };
        return [...current.values()].some((newer) => isContinued(older, newer));
      };
      if (rank >= MAX_SAVED_CONVERSATIONS || (await isOutdated())) await this.#folder.remove(alias, name);
    }
  }

  /** Restores the slots of an engine that has just been started. */
  async restore(alias: string, engine: Engine, loading: AbortSignal): Promise<void> {
    await this.#attempt(
      "restore",
      alias,
      async (signal) => {
        const slots = this.#slots;
        // Starts hashing without waiting: the hash is needed at the unload, and takes seconds for a large file.
        if (engine.spec.purpose === "generate")
          slots.hashes.of(identityFiles(engine.spec), neverAborted()).catch(() => undefined);
        const saved = (await this.#folder.list(alias)).filter(({ isAutomatic }) => isAutomatic);
        if (saved.length === 0) return;
        const identity = await slots.identityOf(engine, signal);
        const usable = saved.filter(
          ({ header }) =>
            header && isSameIdentity(header, identity) && header.tokens <= engine.info.contextSize,
        );
        for (const [slot, { name }] of usable.slice(0, engine.spec.slots).entries()) {
          signal.throwIfAborted();
          const restore = this.#folder.read(
            alias,
            name,
            async (state) => await slots.slotsOf(engine).restore(slot, state, signal),
          );
          await restore.catch((error: unknown) => this.#log("restore", alias, error));
        }
      },
      loading,
    );
  }

  /** True if the same conversation is on disk already, whose file is then marked as the newest. */
  async #isSavedAlready(alias: string, name: string, header: SavedHeader): Promise<boolean> {
    const saved = (await this.#folder.list(alias)).find((each) => each.name === name);
    return (
      saved?.header !== undefined &&
      isSameIdentity(saved.header, header) &&
      (await this.#folder.touch(alias, name))
    );
  }

  async #attempt(
    action: "save" | "restore",
    alias: string,
    work: (signal: AbortSignal) => Promise<void>,
    loading?: AbortSignal,
  ): Promise<void> {
    const limit = AbortSignal.timeout(MAX_WAIT_MS);
    try {
      await work(loading ? AbortSignal.any([limit, loading]) : limit);
    } catch (error) {
      loading?.throwIfAborted();
      this.#log(action, alias, error);
    }
  }

  #log(action: "save" | "restore", alias: string, error: unknown): void {
    // Prompts of many models cannot be saved, which is no problem worth a warning.
    const isUsual = error instanceof ServiceError && error.code === "unsupported_feature";
    const message = `Cannot ${action} the prompts of a model; they will be processed again`;
    if (isUsual) this.#logger.debug({ model: alias, err: error }, message);
    else this.#logger.warn({ model: alias, err: error }, message);
  }
}

function neverAborted(): AbortSignal {
  return new AbortController().signal;
}

/** True if a conversation with the same adapter scales begins like an older one, except for that one's last tokens. */
function isContinued(older: Conversation, newer: Conversation): boolean {
  if (older.scales.join() !== newer.scales.join()) return false;
  const compared = Math.max(1, older.tokens.length - ENDING_TOKENS);
  return older.tokens.subarray(0, compared).every((token, at) => token === newer.tokens[at]);
}
