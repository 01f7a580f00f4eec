import path from "node:path";
import type { SlotState } from "../../engine/engine-slots.ts";
import type { Engine } from "../../engine/engine.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ModelsOptions } from "../models-options.ts";
import { headerOf, ModelSlots, type ModelSlotsOptions } from "./model-slots.ts";
import { SavedFolder } from "./saved-folder.ts";
import type { SavedHeader } from "./saved-header.ts";
import { identityFiles, isSameIdentity, ModelHashes } from "./slot-identity.ts";

/** Saves prompts of models: by name for clients, and automatically when a model is unloaded. */
export class SavedPrompts {
  readonly slots: ModelSlots;
  /** Undefined: saving is off. */
  readonly cache: PromptCache | undefined;
  /** Undefined: saving is off. */
  readonly folder: SavedFolder | undefined;
  readonly #hashes: ModelHashes;

  constructor(
    { config, kernels, logger }: Pick<ModelsOptions, "config" | "kernels" | "logger">,
    models: Pick<ModelSlotsOptions, "aliasOf" | "acquire" | "engineOf">,
  ) {
    const limitBytes = config.models.saved_prompts;
    const root = path.join(config.cache_dir, "prompts");
    this.folder = limitBytes > 0 ? new SavedFolder(root, limitBytes) : undefined;
    this.#hashes = new ModelHashes(path.join(root, "model-hashes.json"));
    const shared = { hashes: this.#hashes, kernels };
    this.slots = new ModelSlots({ ...models, ...shared, folder: this.folder, limitBytes });
    this.cache =
      this.folder && new PromptCache({ ...shared, folder: this.folder, slots: this.slots, logger });
  }

  /** Aborts hashes that are being computed. */
  close(): void {
    this.#hashes.close();
  }
}

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

interface PromptCacheOptions {
  readonly folder: SavedFolder;
  readonly hashes: Pick<ModelHashes, "of">;
  readonly slots: Pick<ModelSlots, "slotsOf" | "identityOf">;
  readonly logger: ModelsOptions["logger"];
}

/**
 * Saves the slots of a model that is unloaded, and restores them when it is loaded again. Errors are only logged: a
 * prompt that cannot be saved or restored is processed again.
 */
export class PromptCache {
  readonly #options: PromptCacheOptions;

  constructor(options: PromptCacheOptions) {
    this.#options = options;
  }

  /** Saves the idle slots of an engine, and removes earlier versions of their conversations. */
  async save(alias: string, engine: Engine): Promise<void> {
    await this.#attempt("save", alias, async (signal) => {
      const { folder, slots } = this.#options;
      const engineSlots = slots.slotsOf(engine);
      const timeout = AbortSignal.any([signal, AbortSignal.timeout(ENGINE_TIMEOUT_MS)]);
      const used = (await engineSlots.list(timeout)).filter(
        ({ tokens, isBusy }) => !isBusy && tokens >= MIN_TOKENS,
      );
      if (used.length === 0) return;
      const identity = await slots.identityOf(engine, signal);
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
              await folder.write(alias, name, header, state);
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
    const { folder } = this.#options;
    const saved = (await folder.list(alias)).filter(({ isAutomatic }) => isAutomatic);
    for (const [rank, { name, header }] of saved.entries()) {
      if (current.has(name)) continue;
      const isOutdated = async (): Promise<boolean> => {
        const tokens = await folder.tokens(alias, name).catch(() => undefined);
        if (tokens === undefined) return true;
        const older = { tokens, scales: header?.scales ?? [] };
        return [...current.values()].some((newer) => isContinued(older, newer));
      };
      if (rank >= MAX_SAVED_CONVERSATIONS || (await isOutdated())) await folder.remove(alias, name);
    }
  }

  /** Restores the slots of an engine that has just been started. */
  async restore(alias: string, engine: Engine, loading: AbortSignal): Promise<void> {
    await this.#attempt(
      "restore",
      alias,
      async (signal) => {
        const { folder, hashes, slots } = this.#options;
        // Starts hashing without waiting: the hash is needed when the model is unloaded, and takes seconds for a large
        // file.
        if (engine.spec.purpose === "generate")
          hashes.of(identityFiles(engine.spec), neverAborted()).catch(() => undefined);
        const saved = (await folder.list(alias)).filter(({ isAutomatic }) => isAutomatic);
        if (saved.length === 0) return;
        const identity = await slots.identityOf(engine, signal);
        const usable = saved.filter(
          ({ header }) =>
            header && isSameIdentity(header, identity) && header.tokens <= engine.info.contextSize,
        );
        for (const [slot, { name }] of usable.slice(0, engine.spec.slots).entries()) {
          signal.throwIfAborted();
          const restore = folder.read(
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
    const { folder } = this.#options;
    const saved = (await folder.list(alias)).find((each) => each.name === name);
    return (
      saved?.header !== undefined && isSameIdentity(saved.header, header) && (await folder.touch(alias, name))
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
    if (isUsual) this.#options.logger.debug({ model: alias, err: error }, message);
    else this.#options.logger.warn({ model: alias, err: error }, message);
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
