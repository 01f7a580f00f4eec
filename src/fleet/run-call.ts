import type { TokenLogprob } from "../engine/protocol/generation.ts";
import type { ChosenTokens, Inference } from "../inference/inference.ts";
import type { CallRequest, GenerateCall } from "./call-schemas.ts";
import type { ReportSender } from "./report-sender.ts";

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
