import type { TokenLogprob } from "../engine/protocol/generation.ts";
import type { InferenceEvent, InferenceRequest, InferenceStream } from "../inference/inference.ts";
import type { ShortCall } from "./call-schemas.ts";
import type { z } from "zod";
import { encodeValue } from "./encode-value.ts";
import { MachineLost, type RemoteCall } from "./remote-calls.ts";

/** A request without what only makes sense on the machine where it arrived. */
export function encodeGenerate(request: InferenceRequest): Uint8Array {
  const wantsTokens = request.onTokens !== undefined;
  const left = {
    model: undefined,
    furtherOf: undefined,
    mayWait: undefined,
    isCounted: undefined,
    isTimed: undefined,
    slot: undefined,
  };
  return encodeValue({ op: "generate", request: { ...request, ...left, wantsTokens } });
}

/** As {@link encodeGenerate}, for the other calls. */
export function encodeShort(op: ShortCall, request: object): Uint8Array {
  return encodeValue({ op, request: { ...request, model: undefined, mayWait: undefined } });
}

/** Waits until a machine has begun to answer. @throws ServiceError, MachineLost, or the reason of the call's signal */
export async function beginRemote(
  call: RemoteCall,
  model: string,
  onTokens: (tokens: readonly TokenLogprob[]) => void,
): Promise<InferenceStream> {
  const report = await call.next();
  if (report.type !== "begun") throw unexpected(call);
  const { loadMs, sampling, warnings } = report;
  return { model, loadMs, sampling, warnings, events: remoteEvents(call, onTokens) };
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
  onTokens: (tokens: readonly TokenLogprob[]) => void,
): AsyncGenerator<InferenceEvent, undefined, undefined> {
  try {
    for (;;) {
      const report = await call.next();
      if (report.type !== "events") throw unexpected(call);
      if (report.tokens) onTokens(report.tokens);
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
