import { ADDRESSES, OFFSETS } from "../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../wasm/memory-cells.ts";
import {
  CLOCK_STEP,
  DRAFT_TOKENS,
  FALLBACK_MARK,
  FREE_MEMORY,
  hostMemory,
  linkHost,
  PROCESS_RESULT,
  STACK_TOP,
  TOKENS_READ,
} from "./kernel-host-module.ts";

const PAGES = 64;
/** Structures of llama.cpp's, far enough from each other. */
const place = (number: number): number => STACK_TOP + 65_536 * number;
export const PLACES = {
  server: place(0),
  context: place(1),
  slots: place(2),
  /** The request of all slots. */
  task: place(3),
  requests: place(4),
  /** Request of the first slot. */
  request: place(5),
  text: place(6),
  guess: place(7),
  tokens: place(8),
  params: place(9),
  draft: place(10),
  draftContext: place(11),
  batch: place(12),
  given: place(13),
  sampler: place(14),
} as const;

export const BYTES_OF_TOKEN = 80;
const BYTES_OF_SLOT = 3296;
const REQUEST_BYTES = 32;
/** Beside a field that wasm/llama-cpp-build.ts lists: cparams.n_ctx_seq, and two of our own in a task. */
const AT_SLOT_TOKENS = OFFSETS["llama_context.cparams.n_ctx"].at + 4;
const AT_MOST_GUESSED = OFFSETS["server_task.params.n_keep"].at - 4;
const AT_NUMBER = AT_MOST_GUESSED + 2;

/** enum slot_state */
export const SLOT_STATES = { idle: 0, reading: 3, generating: 5 } as const;
/** How tokens can be taken out of a memory. */
export const REMOVAL = { any: 1, whole: 2 } as const;
export const MEMORY_CLASSES: Readonly<Record<"cache" | "mamba", bigint>> = {
  cache: BigInt(ADDRESSES.kvCacheClass),
  mamba: 1n,
};

type Call = (...args: (bigint | number)[]) => number | bigint;
type Kernel = "guess" | "speculation" | "draft" | "draft_process" | "sample" | "process" | "update_slots";

export interface Situation {
  /** State of each slot; absent: one generates. */
  readonly states?: readonly number[];
  /** Tokens that each slot has in the cache. */
  readonly tokens?: number;
  readonly task?: number;
  /** Maximum number of guessed tokens of the request. */
  readonly most?: number;
  readonly batch?: number;
  readonly removal?: number;
  /** Tokens of a cache that slots share; absent: each has its own. */
  readonly shared?: number;
  /** Free cells in llama.cpp's KV cache. */
  readonly freeCells?: number;
}

/** Tokens that a step of the model computes. */
export interface Step {
  readonly guessed?: number;
  readonly tokens?: number;
  readonly context?: number;
  readonly result?: number;
}

/** The kernels that guess tokens, in a memory with a server of llama.cpp's as far as they look at it. */
export class GuessingHost {
  readonly view: DataView;
  readonly call: Readonly<Record<Kernel, Call>>;

  private constructor(view: DataView, call: Readonly<Record<Kernel, Call>>) {
    this.view = view;
    this.call = call;
  }

  static async start(): Promise<GuessingHost> {
    const memory = hostMemory(PAGES);
    const { instance } = await WebAssembly.instantiate(linkHost(PAGES, false), { env: { memory } });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const host = new GuessingHost(new DataView(memory.buffer), instance.exports as Record<Kernel, Call>);
    host.setPointer(FREE_MEMORY, PAGES * 65_536);
    return host;
  }

  setPointer(at: number, to: number): void {
    this.view.setBigUint64(at, BigInt(to), true);
  }

  setInt(at: number, to: number): void {
    this.view.setInt32(at, to, true);
  }

  int(at: number): number {
    return this.view.getInt32(at, true);
  }

  /** A vector of so many bytes. */
  setVector(at: number, begin: number, bytes: number): void {
    this.setPointer(at, begin);
    this.setPointer(at + 8, begin + bytes);
  }

  /** The numbers in a vector. */
  vector(at: number): number[] {
    const [from, to] = [0, 8].map((end) => Number(this.view.getBigUint64(at + end, true)));
    return Array.from({ length: (to! - from!) / 4 }, (_, index) => this.int(from! + 4 * index));
  }

  /** Where a field of a slot is. */
  slotField(slot: number, field: "task" | "state" | "smpl" | "ctx_dft"): number {
    return PLACES.slots + slot * BYTES_OF_SLOT + OFFSETS[`server_slot.${field}`].at;
  }

  /** The number under which the script knows the request; 0: none. */
  setNumber(number: number): void {
    this.view.setUint16(PLACES.task + AT_NUMBER, number, true);
  }

  /** Sets up the server and its slots. */
  serve({
    states = [SLOT_STATES.generating],
    tokens = 0,
    task = 1,
    most = 64,
    batch = 512,
    removal = REMOVAL.any,
    shared,
  }: Situation = {}): void {
    const { server, context, slots } = PLACES;
    this.setPointer(MEMORY_CELLS.server, server);
    this.setPointer(server + OFFSETS["server_context_impl.ctx_tgt"].at, context);
    this.setInt(server + OFFSETS["server_context_impl.ctx_tgt_seq_rm_type"].at, removal);
    this.setVector(server + OFFSETS["server_context_impl.slots"].at, slots, states.length * BYTES_OF_SLOT);
    this.setInt(context + OFFSETS["llama_context.cparams.n_ctx"].at, shared ?? states.length * 4096);
    this.setInt(context + AT_SLOT_TOKENS, shared ?? 4096);
    this.setInt(context + OFFSETS["llama_context.cparams.n_batch"].at, batch);
    this.setInt(PLACES.task, task);
    this.view.setUint8(PLACES.task + AT_MOST_GUESSED, most);
    for (const [slot, state] of states.entries()) {
      this.setPointer(this.slotField(slot, "task"), PLACES.task);
      this.setInt(this.slotField(slot, "state"), state);
      const prompt = slots + slot * BYTES_OF_SLOT + OFFSETS["server_slot.prompt.tokens.tokens"].at;
      this.setVector(prompt, 0, 4 * tokens);
    }
  }

  /** Guesses for the first slot after a text whose last token the model has just generated. */
  guessed(text: readonly number[], situation: Situation = {}): number[] {
    this.serve({ tokens: text.length - 1, ...situation });
    return this.guess(text, situation);
  }

  /** The same with the server as it is. */
  guess(text: readonly number[], { states = [0], freeCells = 1000 }: Situation = {}): number[] {
    const { requests, request, guess, tokens } = PLACES;
    this.setVector(requests, request, states.length * REQUEST_BYTES);
    this.setVector(PLACES.text, tokens, 4 * (text.length - 1));
    for (const [at, token] of text.entries()) this.setInt(tokens + 4 * at, token);
    this.view.setUint8(request, 1);
    this.setInt(request + 4, freeCells);
    this.setInt(request + 8, text.length - 1);
    this.setInt(request + 12, text.at(-1) ?? 0);
    this.setPointer(request + 16, PLACES.text);
    this.setPointer(request + 24, guess);
    // As llama.cpp clears a vector: its memory stays.
    this.view.setBigUint64(guess + 8, this.view.getBigUint64(guess, true), true);
    this.call.guess(0n, BigInt(requests));
    return this.vector(guess);
  }

  /** A draft model that has read so many tokens, and is sure of so many of the next ones. */
  setDraft(read: number, { sure = 0, memoryClass = MEMORY_CLASSES.cache } = {}): void {
    const { draft, draftContext } = PLACES;
    const memoryAt = draftContext + 1024;
    this.setPointer(draft + OFFSETS["common_speculative_impl_draft_simple.params.ctx_dft"].at, draftContext);
    this.setInt(draftContext + OFFSETS["llama_context.cparams.n_batch"].at, 64);
    this.setPointer(draftContext + OFFSETS["llama_context.memory"].at, memoryAt);
    this.view.setBigUint64(memoryAt, memoryClass, true);
    this.setInt(TOKENS_READ, read);
    this.setInt(DRAFT_TOKENS, sure);
    this.setInt(FALLBACK_MARK, 0);
  }

  /** Has the draft model guess, for what {@link guess} has asked, which takes so many milliseconds. */
  draft(ms = 0): void {
    this.view.setFloat64(CLOCK_STEP, ms, true);
    this.call.draft(BigInt(PLACES.draft), BigInt(PLACES.requests));
  }

  /** Begins a step with slots in these states, all of the request that there is. */
  begin(states: readonly number[]): void {
    this.serve({ states, task: this.int(PLACES.task) || 1 });
    this.call.update_slots(BigInt(PLACES.server));
  }

  /** The model computes a step in so many milliseconds. */
  step(
    ms: number,
    { guessed = 0, tokens = 1 + guessed, context = PLACES.context, result = 0 }: Step = {},
  ): void {
    this.view.setFloat64(CLOCK_STEP, ms, true);
    this.setInt(PROCESS_RESULT, result);
    this.setInt(MEMORY_CELLS.guessedTokens, guessed);
    const { batch } = PLACES;
    this.setVector(batch + OFFSETS["llama_batch_ext.tokens"].at, PLACES.tokens, tokens * BYTES_OF_TOKEN);
    this.call.process(BigInt(context), 1, BigInt(batch));
  }

  steps(count: number, ms: number, options?: Step): void {
    for (let at = 0; at < count; at++) this.step(ms, options);
  }

  /** Learned cost of a checked token beside so many requests, in hundredths of a step for one of them. */
  tokenCost(requests = 1): number {
    return this.view.getFloat32(MEMORY_CELLS.stepCosts + 16 * (requests - 1) + 4, true);
  }

  /** Cost of a step of the draft model. */
  get draftCost(): number {
    return this.view.getFloat32(MEMORY_CELLS.costOfDraft, true);
  }

  /** Steps of one request since the last one without guesses. */
  set guessSteps(steps: number) {
    this.setInt(MEMORY_CELLS.stepCosts + 12, steps);
  }

  /** True if llama.cpp's own function was called. */
  get wasOriginalCalled(): boolean {
    return this.int(FALLBACK_MARK) === 1;
  }
}

/** So many numbers from one on. */
export const count = (from: number, length: number): number[] => Array.from({ length }, (_, at) => from + at);

/** A text that says 1 to 100 twice, and has said so many of them the second time. */
export const again = (said: number): number[] => [...count(1, 100), ...count(1, said)];
