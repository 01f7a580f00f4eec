import type { OutputFormat } from "../engine/protocol/generation.ts";
import type { InferenceEvent, InferenceRequest, InferenceStream } from "../inference/inference.ts";
import type { ShortCall } from "./call-schemas.ts";
import type { z } from "zod";
import type { FleetModel } from "./dispatch.ts";
import { encodeValue } from "./wire-format.ts";
import type { Candidate } from "./members.ts";
import { MachineLost, type RemoteCall, type RemoteCalls } from "./remote-calls.ts";

/** Request that can be encoded for another machine. */
export type RemoteRequest = InferenceRequest & { readonly format: OutputFormat };

/** Encodes a generation request without the fields that apply only to this machine. */
export function encodeGenerate(request: RemoteRequest): Uint8Array {
  const { given, failedTries, onTokenIds } = request.continuation ?? {};
  const wireFields = {
    given,
    failedTries,
    wantsTokens: request.onLogprobs !== undefined,
    wantsChosen: onTokenIds !== undefined,
  };
  const localFields = {
    model: undefined,
    choiceOf: undefined,
    origin: undefined,
    continuation: undefined,
    isBuffered: undefined,
    slot: undefined,
  };
  return encodeValue({ op: "generate", request: { ...request, ...localFields, ...wireFields } });
}

/** Encodes a request of any other call. */
export function encodeShort(op: ShortCall, request: object): Uint8Array {
  return encodeValue({ op, request: { ...request, model: undefined, origin: undefined } });
}

/** Offers the encoded request `body` to the machine of a candidate. */
export function openCall(
  calls: RemoteCalls,
  candidate: Candidate,
  { files, settings, adapter }: FleetModel,
  body: Uint8Array,
  needsSlot: boolean,
  signal: AbortSignal,
): RemoteCall {
  const name = adapter === undefined ? candidate.name : `${candidate.name}:${adapter}`;
  return calls.open(candidate.machine, { files, settings, name, needsSlot }, body, signal);
}

/** Listeners for the tokens of an answer. */
type TokenListeners = Pick<InferenceRequest, "onLogprobs" | "continuation">;

/** Waits until a machine has begun to answer. @throws ServiceError, MachineLost, or the reason of the call's signal */
export async function beginRemote(
  call: RemoteCall,
  model: string,
  listeners: TokenListeners,
): Promise<InferenceStream> {
  const report = await call.next();
  if (report.type !== "begun") throw unexpectedReport(call);
  const { loadMs, sampling, warnings } = report;
  return { model, loadMs, sampling, warnings, events: remoteEvents(call, listeners) };
}

/** Waits for the answer to a call other than a generation. @throws as {@link beginRemote} */
export async function shortAnswer<Answer>(call: RemoteCall, schema: z.ZodType<Answer>): Promise<Answer> {
  const report = await call.next();
  const answer = report.type === "answer" ? schema.safeParse(report.answer) : undefined;
  if (!answer?.success) throw unexpectedReport(call);
  return answer.data;
}

async function* remoteEvents(
  call: RemoteCall,
  { onLogprobs: onTokens, continuation }: TokenListeners,
): AsyncGenerator<InferenceEvent, undefined, undefined> {
  try {
    for (;;) {
      const report = await call.next();
      if (report.type !== "events") throw unexpectedReport(call);
      if (report.tokens) onTokens?.(report.tokens);
      if (report.chosen) continuation?.onTokenIds?.(report.chosen);
      for (const event of report.events) {
        yield event;
        if (event.type === "done") return undefined;
      }
    }
  } finally {
    call.end();
  }
}

function unexpectedReport(call: RemoteCall): MachineLost {
  call.end();
  return new MachineLost("it answers something else");
}
