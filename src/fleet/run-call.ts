import { abortable } from "../async/promises.ts";
import type { TokenLogprob } from "../engine/protocol/generation.ts";
import { joinDeltas } from "../engine/protocol/piece.ts";
import type { ChosenTokens, Inference, InferenceEvent } from "../inference/inference.ts";
import type { CallRequest, GenerateCall, Report } from "./call-schemas.ts";
import { WINDOW_BYTES } from "./remote-calls.ts";
import { encodeValue, type Frame, inParts } from "./wire-format.ts";

/**
 * Works on a call of another machine, and reports to it. How long it may take is that machine's business.
 * @param name of the model on this machine
 * @throws ServiceError overloaded when it cannot begin at once, and what the inference throws
 */
export async function runCall(
  inference: Inference,
  name: string,
  call: CallRequest,
  sender: ReportSender,
  signal: AbortSignal,
): Promise<void> {
  if (call.op === "generate") await generate(inference, name, call.request, sender, signal);
  else sender.report({ type: "answer", answer: await answer(inference, name, call, signal) });
}

async function answer(
  inference: Inference,
  model: string,
  call: Exclude<CallRequest, { op: "generate" }>,
  signal: AbortSignal,
): Promise<unknown> {
  const alone = { model, mayWait: false, isTimed: false };
  switch (call.op) {
    case "embed":
      return await inference.embed({ ...call.request, ...alone }, signal);
    case "rerank":
      return await inference.rerank({ ...call.request, ...alone }, signal);
    case "score":
      return await inference.score({ ...call.request, ...alone }, signal);
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
  { wantsTokens, wantsChosen, ...request }: GenerateCall,
  sender: ReportSender,
  signal: AbortSignal,
): Promise<void> {
  // The first tokens may be generated before the answer has begun for its reader.
  const early: (() => void)[] = [];
  let hasBegun = false;
  const tell = (say: () => void): void => {
    if (hasBegun) say();
    else early.push(say);
  };
  const onTokens = (tokens: readonly TokenLogprob[]): void => tell(() => sender.token(tokens));
  const onChosen = (tokens: ChosenTokens): void => tell(() => sender.chosen(tokens));
  const { loadMs, sampling, warnings, events } = await inference.generate(
    {
      ...request,
      model,
      mayWait: false,
      isTimed: false,
      ...(wantsTokens && { onTokens }),
      ...(wantsChosen && { onChosen }),
    },
    signal,
  );
  sender.begin({ type: "begun", loadMs, sampling, warnings: [...warnings] });
  hasBegun = true;
  for (const say of early) say();
  for await (const event of events) {
    await sender.room(signal);
    sender.event(event);
  }
}

/**
 * Between two messages with text: a faster model's tokens go together, since a message costs several processes as much time
 * as such a model needs for a token. Slower ones, all that people wait for, never wait for this.
 */
const GAP_MS = 10;
/** Events of one message: what has waited for room must not become one that is larger than the room. */
const MAX_EVENTS = 64;
/** An acceptance that is told by nothing else is told after this time. */
const ACCEPT_MS = 50;

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
  /** How many have become these. */
  #gathered = 0;
  #tokens: TokenLogprob[] = [];
  #chosen: { ids: number[]; replaced: number; failedTries: number | undefined } | undefined;
  #isScheduled = false;
  #wake: (() => void) | undefined;

  constructor(send: (frame: Omit<Frame, "call">) => void, maxPayload: number) {
    this.#send = send;
    this.#maxPayload = maxPayload;
  }

  /** Resolves when there is room for more. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#sentBytes - this.#readBytes >= WINDOW_BYTES) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await abortable(promise, signal);
    }
  }

  /** So many bytes have been read on the other side. */
  read(bytes: number): void {
    if (bytes <= this.#readBytes) return;
    this.#readBytes = bytes;
    this.#wake?.();
  }

  /** Tells that this machine works on the call, unless what it tells by itself comes first. */
  accept(): void {
    setTimeout(() => {
      if (this.#number === 0) this.#send({ kind: "accepted", number: 0, payload: new Uint8Array() });
    }, ACCEPT_MS).unref();
  }

  /** Sends that the answer begins, together with its first events. */
  begin(begun: Extract<Report, { type: "begun" }>): void {
    this.#begun = begun;
    this.#schedule();
  }

  /** Sends an event, together with those that come in the same turn of the event loop, or soon after one with text, as one piece. */
  event(event: InferenceEvent): void {
    if (!joinDeltas(this.#events.at(-1), event)) this.#events.push(event);
    this.#gathered += 1;
    this.#hasText ||= event.type === "text-delta" || event.type === "reasoning-delta";
    if (this.#gathered >= MAX_EVENTS) this.#flush();
    else if (event.type === "done") atTurnEnd(() => this.#flush());
    else this.#schedule();
  }

  /** Tokens go with the next event: the engine tells them also while the reader has no room. */
  token(tokens: readonly TokenLogprob[]): void {
    for (const token of tokens) this.#tokens.push(token);
  }

  /** As {@link token}. Those of an answer that did not fit are of no use when the next one has begun. */
  chosen({ ids, replaced, failedTries }: ChosenTokens): void {
    if (this.#chosen?.failedTries !== failedTries) this.#chosen = undefined;
    this.#chosen ??= { ids: [], replaced: 0, failedTries };
    for (const id of ids) this.#chosen.ids.push(id);
    this.#chosen.replaced += replaced;
  }

  /** Sends a report now, after the events before it. */
  report(report: Report): void {
    this.#flush();
    this.#write(report);
  }

  /**
   * Tells that this machine still works on the call, unless it has just sent something. The tokens of an answer that is held back
   * until it fits, and has no events until then, are told with it.
   */
  alive(): void {
    const hasRoom = this.#sentBytes - this.#readBytes < WINDOW_BYTES;
    if (!this.#hasSent && this.#chosen && hasRoom) this.#flush();
    if (!this.#hasSent) this.#send({ kind: "alive", number: this.#number, payload: new Uint8Array() });
    this.#hasSent = false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const flush = (): void => atTurnEnd(() => this.#flush());
    const wait = this.#textAt + GAP_MS - performance.now();
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
    this.#gathered = 0;
    this.#tokens = [];
    this.#chosen = undefined;
  }

  #write(report: Report): void {
    const parts = [...inParts(encodeValue(report), this.#maxPayload)];
    for (const [at, payload] of parts.entries()) {
      this.#send({ kind: at === parts.length - 1 ? "last" : "part", number: this.#number, payload });
      this.#number += 1;
      this.#sentBytes += payload.length;
    }
    this.#hasSent = true;
  }
}

const waiting: (() => void)[] = [];

/**
 * Does something at the end of this turn of the event loop, directly after what others do then: what they all send goes to
 * the NATS server in one write.
 */
function atTurnEnd(work: () => void): void {
  if (waiting.push(work) > 1) return;
  setImmediate(() => {
    for (const each of waiting.splice(0)) each();
  });
}
