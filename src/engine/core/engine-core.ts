import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { EngineInfo } from "../protocol/engine-spec.ts";
import type { GenerationEvent, GenerationRequest } from "../protocol/generation.ts";
import type {
  EmbeddingResult,
  RerankResult,
  SlotRequest,
  SlotResult,
  TokenIds,
  TokenizeOptions,
  TokenPieces,
} from "../protocol/calls.ts";
import { canReasonUnasked, readInfo } from "./engine-info.ts";
import { AnswerNumbers } from "./answer-numbers.ts";
import { AnswerReader } from "./answer-reader.ts";
import { buildCompletionCall, promptText, toRequestJson } from "./build-request.ts";
import { ChosenTokens } from "./loop-request.ts";
import { readEmbedding, readRerank } from "./embedding-result.ts";
import { fromLoadFailure } from "./engine-failure.ts";
import {
  adapterName,
  buildLoadParameters,
  DRAFT_NAME,
  type EngineSettings,
  fullStep,
} from "./load-parameters.ts";
import { endsWithMedia, MediaEnding, noTextAfterMedia } from "./media-ending.ts";
import type { EngineFiles, EnginePlatform } from "./platform.ts";
import { draftCostPatch, promptReusePatch, StepControl } from "./kernel-controls.ts";
import { PromptSchedule, SharedContext } from "./shared-context.ts";
import { withReadableImages } from "./webp.ts";
import { RequestLoop } from "./request-loop.ts";
import { ServerRequests } from "./server-requests.ts";
import { checkSpecialTokens, checkSpecialTokensOf, Tokenizer } from "./tokenizer.ts";
import { Slots } from "./slots.ts";
import { AUDIO_PATCHES } from "./worker-patches.ts";
import { WllamaSession } from "./wllama-session.ts";

/**
 * llama.cpp with one model loaded. The caller keeps at most `slots` calls in flight. Methods throw a ServiceError when
 * one call failed and an EngineFatalError when the engine is lost.
 */
export class EngineCore {
  readonly info: EngineInfo;
  readonly #session: WllamaSession;
  readonly #requests: ServerRequests;
  readonly #tokenizer: Tokenizer;
  readonly #slots: Slots;
  readonly #numbers: AnswerNumbers;
  readonly #mediaMarker: string;
  readonly #decodeWebp: EnginePlatform["decodeWebp"];
  readonly #reasonsUnasked: boolean;
  readonly #adapterScales: readonly number[];
  readonly #purpose: EngineSettings["purpose"];
  readonly #guessTokens: number;
  readonly #turns: PromptSchedule;
  readonly #sharesContext: boolean;
  readonly #mediaEnding: MediaEnding;

  private constructor(
    session: WllamaSession,
    { decodeWebp }: Pick<EnginePlatform, "decodeWebp">,
    info: EngineInfo,
    {
      purpose,
      sharedContext,
      chatTemplate,
      slots,
      guessTokens = 0,
    }: Pick<EngineSettings, "purpose" | "sharedContext" | "chatTemplate" | "slots" | "guessTokens">,
    steps: StepControl | undefined,
    adapterScales: readonly number[],
  ) {
    this.#adapterScales = adapterScales;
    this.#session = session;
    const loop = new RequestLoop(session, steps, session.memory && new ChosenTokens(session.memory));
    this.#requests = new ServerRequests(loop);
    this.#mediaEnding = new MediaEnding((body, onResult, signal) =>
      this.#requests.run("completion", body, onResult, signal),
    );
    this.#tokenizer = new Tokenizer(session, loop);
    this.#slots = new Slots(session, loop, { count: slots, vocabSize: info.vocabSize });
    this.#numbers = new AnswerNumbers(session, loop, info.vocabSize);
    this.#mediaMarker = session.info.media_marker ?? "";
    this.#decodeWebp = decodeWebp;
    this.#reasonsUnasked = canReasonUnasked(
      chatTemplate ?? session.info.metadata["tokenizer.chat_template"] ?? "",
    );
    this.#purpose = purpose;
    this.#guessTokens = guessTokens;
    this.#sharesContext = sharedContext;
    this.#turns = new PromptSchedule(
      sharedContext ? new SharedContext(info.contextTokens, () => loop.steps) : undefined,
      (text, signal) => this.#tokenizer.count(text, signal),
    );
    this.info = info;
  }

  /** @throws ServiceError invalid_model_file, insufficient_memory or model_load_failed */
  static async load(
    platform: EnginePlatform,
    settings: EngineSettings,
    files: EngineFiles,
  ): Promise<EngineCore> {
    const scales = files.adapters.map(({ scale }) => scale);
    try {
      const session = await WllamaSession.start(
        platform,
        {
          blobs: files.projector ? [...files.model, files.projector] : files.model,
          patches: [
            promptReusePatch(settings),
            ...(files.draft ? [draftCostPatch(files.model, files.draft)] : []),
            ...(settings.hearsAudio ? AUDIO_PATCHES : []),
          ],
          extra: new Map([
            ...files.adapters.map(({ blob }, index) => [adapterName(index), blob] as const),
            ...(files.draft ? [[DRAFT_NAME, files.draft] as const] : []),
          ]),
        },
        buildLoadParameters(settings, scales, files.draft !== undefined),
      );
      try {
        const info = readInfo(session, settings, files.projector !== undefined);
        // A GPU's step size is chosen at warm-up, and its steps cannot be aborted.
        const steps =
          info.gpuLayers > 0
            ? undefined
            : new StepControl(fullStep(settings), settings.slots, session.memory);
        return new EngineCore(session, platform, info, settings, steps, scales);
      } catch (error) {
        session.close();
        throw error;
      }
    } catch (error) {
      throw fromLoadFailure(error);
    }
  }

  /**
   * Runs one generation; resolves after its last event. Aborting the signal cancels it; the slot is free when this
   * settles. The caller has checked the request with {@link checkRequestLimits}.
   */
  async generate(
    request: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#turns.generate((listen) => this.#generate(request, listen, signal), onEvent, signal);
  }

  async #generate(
    asked: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#purpose !== "generate") throw unsupported("generate text");
    checkSpecialTokensOf(asked);
    const request = this.info.hasImageInput ? await withReadableImages(asked, this.#decodeWebp) : asked;
    signal.throwIfAborted();
    using number = await this.#numbers.enter(request);
    const call = buildCompletionCall(request, {
      number: number?.value,
      mediaMarker: this.#mediaMarker,
      contextSize: this.info.contextSize,
      sharedContext: this.#sharesContext,
      reasonsUnasked: this.#reasonsUnasked,
      adapterScales: this.#adapterScales,
      guessTokens: this.#guessTokens,
    });
    if (has(request, "image") && !this.info.hasImageInput) throw unsupported("see images");
    if (has(request, "audio") && !this.info.hasAudioInput) throw unsupported("hear audio");
    if (endsWithMedia(request) && (await this.#mediaEnding.isBare(signal))) throw noTextAfterMedia();
    using share = await this.#turns.enter(promptText(request.input), request.maxTokens, signal);
    const reader = new AnswerReader(request, share, onEvent);
    const { body, files, isChat } = call;
    try {
      await this.#requests.run(
        "completion",
        { _name: "cmpl_req", is_chat: isChat, data_json: toRequestJson(body), files },
        (result, chosen) => reader.take(result, chosen),
        signal,
        number?.value,
      );
    } catch (error) {
      if (!reader.isFull || signal.aborted) throw error;
    }
    reader.finish();
  }

  /** Embeds one text; the vector is L2-normalized. */
  async embed(text: string, signal: AbortSignal): Promise<EmbeddingResult> {
    if (this.#purpose === "rerank") throw unsupported("embed texts");
    checkSpecialTokens(text);
    // With separate contexts, llama.cpp splits texts in the same step at the end of the shortest, and averages only the
    // last piece.
    using held = new DisposableStack();
    if (this.#purpose === "generate") held.use(await this.#turns.alone(signal));
    const share = await this.#turns.enter(text, 0, signal);
    if (share) held.use(share);
    const body = { _name: "embd_req", data_json: toRequestJson({ input: text }), files: [] as [] } as const;
    return readEmbedding(await this.#requests.only("embedding", body, signal));
  }

  /** Scores one document against a query. */
  async rerank(query: string, document: string, signal: AbortSignal): Promise<RerankResult> {
    if (this.#purpose !== "rerank") throw unsupported("rerank documents");
    checkSpecialTokens(document);
    const body = { _name: "rrnk_req", data_json: toRequestJson({ query, document }) } as const;
    return readRerank(await this.#requests.only("rerank", body, signal));
  }

  /** Tokenizes a text, even while all slots are taken. */
  tokenize(text: string, options: TokenizeOptions, signal: AbortSignal): Promise<TokenIds> {
    return this.#tokenizer.tokenize(text, options, signal);
  }

  /** The bytes of tokens, even while all slots are taken. */
  pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces> {
    return this.#tokenizer.pieces(tokens, signal);
  }

  /** What the slots hold, to be saved and restored, even while all slots are taken. */
  slots(request: SlotRequest, signal: AbortSignal): Promise<SlotResult> {
    return this.#slots.handle(request, signal);
  }

  /** Bytes of WebAssembly memory; 0 where threads cannot share it. */
  get heapBytes(): number {
    return this.#session.memory?.buffer.byteLength ?? 0;
  }

  /**
   * Has what requests ask of a GPU compiled, all at once, while they compute nothing: what they answer means nothing.
   * Without a memory that threads share, they are not made.
   */
  async rehearse(request: () => Promise<unknown>): Promise<void> {
    const { memory } = this.#session;
    if (!memory) return;
    const tell = (isRehearsal: 0 | 1): void => {
      new Uint8Array(memory.buffer)[MEMORY_CELLS.gpuRehearsal] = isRehearsal;
    };
    tell(1);
    try {
      await request();
    } finally {
      tell(0);
    }
  }

  /** Ends the engine's worker; calls in flight are not answered. */
  close(): void {
    this.#session.close();
  }
}

function has({ input }: GenerationRequest, type: "image" | "audio"): boolean {
  return (
    input.kind === "chat" && input.messages.some(({ content }) => content.some((part) => part.type === type))
  );
}

function unsupported(what: string): ServiceError {
  return new ServiceError("unsupported_feature", `The model cannot ${what}.`);
}
