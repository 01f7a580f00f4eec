import { abortable } from "../async/promises.ts";
import type { TokenLogprob } from "../engine/protocol/generation.ts";
import { joinDeltas } from "../engine/protocol/text-delta.ts";
import type { GeneratedTokens, Inference, InferenceEvent } from "../inference/inference.ts";
import type { CallRequest, GenerateCall, Report } from "./call-schemas.ts";
import { WINDOW_BYTES } from "./remote-calls.ts";
import { encodeValue, type Frame, splitIntoFrames } from "./wire-format.ts";

/**
 * Runs a call of another machine and reports to it. The caller enforces the time limit.
 * @param name alias of the model on this machine
 * @throws ServiceError overloaded if the call cannot begin at once, and errors of the inference
 */
export async function runCall(
  inference: Inference,
  name: string,
  call: CallRequest,
  sender: ReportSender,
  signal: AbortSignal,
): Promise<void> {
  if (call.op === "generate") await generate(inference, name, call.request, sender, signal);
  else sender.report({ type: "answer", answer: await runShortCall(inference, name, call, signal) });
}

async function runShortCall(
  inference: Inference,
  model: string,
  call: Exclude<CallRequest, { op: "generate" }>,
  signal: AbortSignal,
): Promise<unknown> {
  const options = { model, origin: "remote" } as const;
  switch (call.op) {
    case "embed":
      return await inference.embed({ ...call.request, ...options }, signal);
    case "rerank":
      return await inference.rerank({ ...call.request, ...options }, signal);
    case "score":
      return await inference.score({ ...call.request, ...options }, signal);
    case "tokenize":
      return await inference.tokenize({ ...call.request, model }, signal);
    case "pieces":
      return await inference.pieces({ ...call.request, model }, signal);
    case "detokenize":
      return await inference.detokenize({ ...call.request, model }, signal);
    default:
      return await inference.promptFromTokens({ ...call.request, model }, signal);
  }
}

async function generate(
  inference: Inference,
  model: string,
  { wantsTokens, wantsChosen, given, failedTries, ...request }: GenerateCall,
  sender: ReportSender,
  signal: AbortSignal,
): Promise<void> {
  // The first tokens may be generated before the answer has begun.
  const buffered: (() => void)[] = [];
  let hasBegun = false;
  const deliver = (send: () => void): void => {
    if (hasBegun) send();
    else buffered.push(send);
  };
  const onTokens = (tokens: readonly TokenLogprob[]): void => deliver(() => sender.addTokens(tokens));
  const onChosen = (tokens: GeneratedTokens): void => deliver(() => sender.addChosen(tokens));
  const { loadMs, sampling, warnings, events } = await inference.generate(
    {
      ...request,
      model,
      origin: "remote",
      ...(wantsTokens && { onLogprobs: onTokens }),
      continuation: { given, failedTries, onTokenIds: wantsChosen ? onChosen : undefined },
    },
    signal,
  );
  sender.begin({ type: "begun", loadMs, sampling, warnings: [...warnings] });
  hasBegun = true;
  for (const send of buffered) send();
  for await (const event of events) {
    await sender.waitForWindow(signal);
    sender.event(event);
  }
}

/**
 * Minimum interval between two messages with text. A message costs about as much time as a fast model needs for a
 * token, so the tokens of fast models are combined. Slower models are not delayed.
 */
const TEXT_INTERVAL_MS = 10;
/** Maximum events of a message, so that buffered events do not exceed the window. */
const MAX_EVENTS = 64;
/** Delay after which an acceptance is sent unless another message shows it. */
const ACCEPT_DELAY_MS = 50;

/** Sends the reports of a call, no faster than they are read. */
export class ReportSender {
  readonly #send: (frame: Omit<Frame, "call">) => void;
  readonly #maxPayload: number;
  #number = 0;
  #sentBytes = 0;
  #readBytes = 0;
  #hasSent = false;
  #begun: Report | undefined;
  #hasText = false;
  #textAt = Number.NEGATIVE_INFINITY;
  #events: InferenceEvent[] = [];
  /** Number of events combined in the buffer. */
  #bufferedEvents = 0;
  #tokens: TokenLogprob[] = [];
  #chosen: { ids: number[]; replaced: number; failedTries: number | undefined } | undefined;
  #isScheduled = false;
  #wake: (() => void) | undefined;

  constructor(send: (frame: Omit<Frame, "call">) => void, maxPayload: number) {
    this.#send = send;
    this.#maxPayload = maxPayload;
  }

  /** Resolves when the send window is open. */
  async waitForWindow(signal: AbortSignal): Promise<void> {
    while (this.#sentBytes - this.#readBytes >= WINDOW_BYTES) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await abortable(promise, signal);
    }
  }

  /** Records how many bytes the other machine has read. */
  acknowledge(bytes: number): void {
    if (bytes <= this.#readBytes) return;
    this.#readBytes = bytes;
    this.#wake?.();
  }

  /** Sends that this machine works on the call, unless its first report comes first. */
  accept(): void {
    setTimeout(() => {
      if (this.#number === 0) this.#send({ kind: "accepted", number: 0, payload: new Uint8Array() });
    }, ACCEPT_DELAY_MS).unref();
  }

  /** Sends that the answer begins, together with its first events. */
  begin(begun: Extract<Report, { type: "begun" }>): void {
    this.#begun = begun;
    this.#schedule();
  }

  /** Sends an event, combined with others of the same tick, or of a short time after text. */
  event(event: InferenceEvent): void {
    if (!joinDeltas(this.#events.at(-1), event)) this.#events.push(event);
    this.#bufferedEvents += 1;
    this.#hasText ||= event.type === "text-delta" || event.type === "reasoning-delta";
    if (this.#bufferedEvents >= MAX_EVENTS) this.#flush();
    else if (event.type === "done") atEndOfTick(() => this.#flush());
    else this.#schedule();
  }

  /** Adds tokens to the next event: the engine also sends them while the window is full. */
  addTokens(tokens: readonly TokenLogprob[]): void {
    for (const token of tokens) this.#tokens.push(token);
  }

  /** Adds token ids as {@link addTokens}. Ids of a failed try are dropped when the next try begins. */
  addChosen({ ids, replaced, failedTries }: GeneratedTokens): void {
    if (this.#chosen?.failedTries !== failedTries) this.#chosen = undefined;
    this.#chosen ??= { ids: [], replaced: 0, failedTries };
    for (const id of ids) this.#chosen.ids.push(id);
    this.#chosen.replaced += replaced;
  }

  /** Sends a report at once, after all buffered events. */
  report(report: Report): void {
    this.#flush();
    this.#write(report);
  }

  /**
   * Sends a sign of life unless something has just been sent. Includes buffered token ids of answers that have no
   * events until they are complete.
   */
  keepAlive(): void {
    const isWindowOpen = this.#sentBytes - this.#readBytes < WINDOW_BYTES;
    if (!this.#hasSent && this.#chosen && isWindowOpen) this.#flush();
    if (!this.#hasSent) this.#send({ kind: "alive", number: this.#number, payload: new Uint8Array() });
    this.#hasSent = false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const flush = (): void => atEndOfTick(() => this.#flush());
    const wait = this.#textAt + TEXT_INTERVAL_MS - performance.now();
    if (wait > 0) setTimeout(flush, wait);
    else flush();
  }

  #flush(): void {
    this.#isScheduled = false;
    if (this.#begun) this.#write(this.#begun);
    this.#begun = undefined;
    const [events, tokens, chosen] = [this.#events, this.#tokens, this.#chosen];
    if (events.length === 0 && tokens.length === 0 && !chosen) return;
    this.#write({ type: "events", events, ...(tokens.length > 0 && { tokens }), ...(chosen && { chosen }) });
    if (this.#hasText) this.#textAt = performance.now();
    this.#hasText = false;
    this.#events = [];
    this.#bufferedEvents = 0;
    this.#tokens = [];
    this.#chosen = undefined;
  }

  #write(report: Report): void {
    const parts = splitIntoFrames(encodeValue(report), this.#maxPayload);
    for (const [at, payload] of parts.entries()) {
      this.#send({ kind: at === parts.length - 1 ? "last" : "part", number: this.#number, payload });
      this.#number += 1;
      this.#sentBytes += payload.length;
    }
    this.#hasSent = true;
  }
}

const endOfTickTasks: (() => void)[] = [];

/**
 * Runs a task at the end of this tick, right after those of other calls, so that their messages are sent to the NATS
 * server in one write.
 */
function atEndOfTick(work: () => void): void {
  if (endOfTickTasks.push(work) > 1) return;
  setImmediate(() => {
    for (const each of endOfTickTasks.splice(0)) each();
  });
}
