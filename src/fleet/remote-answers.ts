import type { OutputFormat } from "../engine/protocol/generation.ts";
import type { InferenceEvent, InferenceRequest, InferenceStream } from "../inference/inference.ts";
import type { ShortCall } from "./call-schemas.ts";
import type { z } from "zod";
import type { FoundModel } from "./dispatch.ts";
import { encodeValue } from "./wire-format.ts";
import type { Candidate } from "./members.ts";
import { MachineLost, type RemoteCall, type RemoteCalls } from "./remote-calls.ts";

/** A request that another machine can read. */
export type SentRequest = InferenceRequest & { readonly format: OutputFormat };

/** A request without what only makes sense on the machine where it arrived. */
export function encodeGenerate(request: SentRequest): Uint8Array {
  const wants = { wantsTokens: request.onTokens !== undefined, wantsChosen: request.onChosen !== undefined };
  const left = {
    model: undefined,
    furtherOf: undefined,
    mayWait: undefined,
    isCounted: undefined,
    isTimed: undefined,
    isWhole: undefined,
    slot: undefined,
  };
  return encodeValue({ op: "generate", request: { ...request, ...left, ...wants } });
}

/** As {@link encodeGenerate}, for the other calls. */
export function encodeShort(op: ShortCall, request: object): Uint8Array {
  return encodeValue({ op, request: { ...request, model: undefined, mayWait: undefined } });
}

/** Asks the machine of a place for what `body` says. */
export function openCall(
  calls: RemoteCalls,
  place: Candidate,
  { files, settings, adapter }: FoundModel,
  body: Uint8Array,
  needsSlot: boolean,
  signal: AbortSignal,
): RemoteCall {
  const name = adapter === undefined ? place.name : `${place.name}:${adapter}`;
  return calls.open(place.machine, { files, settings, name, needsSlot }, body, signal);
}

/** Who is told of an answer's tokens. */
type ToldTokens = Pick<InferenceRequest, "onTokens" | "onChosen">;

/** Waits until a machine has begun to answer. @throws ServiceError, MachineLost, or the reason of the call's signal */
export async function beginRemote(
  call: RemoteCall,
  model: string,
  told: ToldTokens,
): Promise<InferenceStream> {
  const report = await call.next();
  if (report.type !== "begun") throw unexpected(call);
  const { loadMs, sampling, warnings } = report;
  return { model, loadMs, sampling, warnings, events: remoteEvents(call, told) };
}

/** The answer of a machine to another call. @throws as {@link beginRemote} */
export async function shortAnswer<Answer>(call: RemoteCall, schema: z.ZodType<Answer>): Promise<Answer> {
  const report = await call.next();
  const answer = report.type === "answer" ? schema.safeParse(report.answer) : undefined;
  if (!answer?.success) throw unexpected(call);
  return answer.data;
}

async function* remoteEvents(
  call: RemoteCall,
  { onTokens, onChosen }: ToldTokens,
): AsyncGenerator<InferenceEvent, undefined, undefined> {
  try {
    for (;;) {
      const report = await call.next();
      if (report.type !== "events") throw unexpected(call);
      if (report.tokens) onTokens?.(report.tokens);
      if (report.chosen) onChosen?.(report.chosen);
      for (const event of report.events) {
        yield event;
        if (event.type === "done") return undefined;
      }
    }
  } finally {
    call.end();
  }
}

function unexpected(call: RemoteCall): MachineLost {
  call.end();
  return new MachineLost("it answers something else");
}
