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
import { mustDisableReasoning, readEngineInfo } from "./engine-info.ts";
import { RequestNumbers } from "./answer-numbers.ts";
import { AnswerReader } from "./answer-reader.ts";
import { buildCompletionCall, approximatePromptText, toRequestJson } from "./build-request.ts";
import { SampledTokenReader } from "./loop-request.ts";
import { readEmbedding, readRerank } from "./embedding-result.ts";
import { fromLoadFailure } from "./engine-failure.ts";
import {
  adapterName,
  buildLoadParameters,
  DRAFT_NAME,
  type EngineSettings,
  maxStepTokens,
} from "./load-parameters.ts";
import { endsWithMedia, TemplateEndingProbe, noTextAfterMedia } from "./media-ending.ts";
import type { EngineFiles, EnginePlatform } from "./platform.ts";
import { draftCostPatch, promptReusePatch, StepControl } from "./kernel-controls.ts";
import { PromptSchedule, SharedContext } from "./shared-context.ts";
import { withReadableImages } from "./webp.ts";
import { RequestLoop } from "./request-loop.ts";
import { ServerRequests } from "./server-requests.ts";
import { checkSpecialTokens, checkRequestSpecialTokens, Tokenizer } from "./tokenizer.ts";
import { Slots } from "./slots.ts";
import { AUDIO_PATCHES } from "./worker-patches.ts";
import { WllamaSession } from "./wllama-session.ts";

/**
 * llama.cpp with one model. The caller must not run more than `slots` calls at a time. Methods throw a ServiceError if
 * the call failed, and an EngineFatalError if the engine can no longer work.
 */
export class EngineCore {
  readonly info: EngineInfo;
  readonly #session: WllamaSession;
  readonly #requests: ServerRequests;
  readonly #tokenizer: Tokenizer;
  readonly #slots: Slots;
  readonly #numbers: RequestNumbers;
  readonly #decodeWebp: EnginePlatform["decodeWebp"];
  readonly #settings: EngineSettings;
  readonly #requestContext: Parameters<typeof buildCompletionCall>[1];
  readonly #promptSchedule: PromptSchedule;
  readonly #templateEnding: TemplateEndingProbe;

  private constructor(
    session: WllamaSession,
    platform: EnginePlatform,
    info: EngineInfo,
    settings: EngineSettings,
    steps: StepControl | undefined,
    adapterScales: readonly number[],
  ) {
    this.#session = session;
    const loop = new RequestLoop(session, steps, session.memory && new SampledTokenReader(session.memory));
    this.#requests = new ServerRequests(loop);
    this.#templateEnding = new TemplateEndingProbe(this.#requests);
    this.#tokenizer = new Tokenizer(loop);
    this.#slots = new Slots(loop, { count: settings.slots, vocabSize: info.vocabSize });
    this.#numbers = new RequestNumbers(loop, info.vocabSize);
    this.#decodeWebp = (file) => platform.decodeWebp(file);
    this.#settings = settings;
    this.#requestContext = {
      mediaMarker: session.info.media_marker ?? "",
      contextSize: info.contextSize,
      sharedContext: settings.sharedContext,
      mustDisableReasoning: mustDisableReasoning(
        settings.chatTemplate ?? session.info.metadata["tokenizer.chat_template"] ?? "",
      ),
      adapterScales,
      guessTokens: settings.guessTokens ?? 0,
    };
    this.#promptSchedule = new PromptSchedule(
      settings.sharedContext ? new SharedContext(info.contextTokens, () => loop.steps) : undefined,
      (text, signal) => this.#tokenizer.count(text, signal),
    );
    this.info = info;
  }

  /** Loads a model. @throws ServiceError invalid_model_file, insufficient_memory or model_load_failed */
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
        const info = readEngineInfo(session, settings, files.projector !== undefined);
        // On a GPU, the step size is fixed and steps cannot be aborted.
        const steps =
          info.gpuLayers > 0
            ? undefined
            : new StepControl(maxStepTokens(settings), settings.slots, session.memory);
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
   * Runs one generation; resolves after its last event. Aborting the signal cancels it. The slot is free when this
   * settles. The caller has to check the request with {@link checkRequestLimits} first.
   */
  async generate(
    request: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#promptSchedule.generate((listen) => this.#generate(request, listen, signal), onEvent, signal);
  }

  async #generate(
    original: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#settings.purpose !== "generate") throw unsupportedFeature("generate text");
    checkRequestSpecialTokens(original);
    const request = this.info.hasImageInput ? await withReadableImages(original, this.#decodeWebp) : original;
    signal.throwIfAborted();
    using number = await this.#numbers.assign(request);
    const call = buildCompletionCall(request, { ...this.#requestContext, number: number?.value });
    if (hasMedia(request, "image") && !this.info.hasImageInput) throw unsupportedFeature("see images");
    if (hasMedia(request, "audio") && !this.info.hasAudioInput) throw unsupportedFeature("hear audio");
    if (endsWithMedia(request) && (await this.#templateEnding.templateEndsWithContent(signal)))
      throw noTextAfterMedia();
    using share = await this.#promptSchedule.enter(
      approximatePromptText(request.input),
      request.maxTokens,
      signal,
    );
    const reader = new AnswerReader(request, share, onEvent);
    const { body, files, isChat } = call;
    try {
      await this.#requests.run(
        "completion",
        { _name: "cmpl_req", is_chat: isChat, data_json: toRequestJson(body), files },
        (result, sampled) => reader.receive(result, sampled),
        signal,
        number?.value,
      );
    } catch (error) {
      if (!reader.contextIsFull || signal.aborted) throw error;
    }
    reader.finish();
  }

  /** Embeds one text; the vector is L2-normalized. */
  async embed(text: string, signal: AbortSignal): Promise<EmbeddingResult> {
    if (this.#settings.purpose === "rerank") throw unsupportedFeature("embed texts");
    checkSpecialTokens(text);
    // llama.cpp splits the texts of a step at the end of the shortest and averages only the last part of each, so a
    // text to average must be alone in its step.
    using locks = new DisposableStack();
    if (this.#settings.purpose === "generate") locks.use(await this.#promptSchedule.lockPrompts(signal));
    const share = await this.#promptSchedule.enter(text, 0, signal);
    if (share) locks.use(share);
    const body = { _name: "embd_req", data_json: toRequestJson({ input: text }), files: [] as [] } as const;
    return readEmbedding(await this.#requests.runForResult("embedding", body, signal));
  }

  async rerank(query: string, document: string, signal: AbortSignal): Promise<RerankResult> {
    if (this.#settings.purpose !== "rerank") throw unsupportedFeature("rerank documents");
    checkSpecialTokens(document);
    const body = { _name: "rrnk_req", data_json: toRequestJson({ query, document }) } as const;
    return readRerank(await this.#requests.runForResult("rerank", body, signal));
  }

  /** Tokenizes a text. Works even while all slots are busy. */
  tokenize(text: string, options: TokenizeOptions, signal: AbortSignal): Promise<TokenIds> {
    return this.#tokenizer.tokenize(text, options, signal);
  }

  /** Returns the bytes of tokens. Works even while all slots are busy. */
  pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces> {
    return this.#tokenizer.pieces(tokens, signal);
  }

  /** Lists, saves, restores or erases slots. Works even while all slots are busy. */
  slots(request: SlotRequest, signal: AbortSignal): Promise<SlotResult> {
    return this.#slots.handle(request, signal);
  }

  /** Bytes of WebAssembly memory; 0 if the memory is not shared with this thread. */
  get heapBytes(): number {
    return this.#session.memory?.buffer.byteLength ?? 0;
  }

  /**
   * Runs a request whose GPU shaders are compiled, in parallel, but not executed. Its result is meaningless. Does
   * nothing if the memory is not shared with this thread.
   */
  async precompile(request: () => Promise<unknown>): Promise<void> {
    const { memory } = this.#session;
    if (!memory) return;
    const setCompileOnly = (value: 0 | 1): void => {
      new Uint8Array(memory.buffer)[MEMORY_CELLS.gpuRehearsal] = value;
    };
    setCompileOnly(1);
    try {
      await request();
    } finally {
      setCompileOnly(0);
    }
  }

  /** Ends the engine's worker. Calls in flight never settle. */
  close(): void {
    this.#session.close();
  }
}

function hasMedia({ input }: GenerationRequest, type: "image" | "audio"): boolean {
  return (
    input.kind === "chat" && input.messages.some(({ content }) => content.some((part) => part.type === type))
  );
}

function unsupportedFeature(what: string): ServiceError {
  return new ServiceError("unsupported_feature", `The model cannot ${what}.`);
}
