import type { Findings } from "../kit/findings.ts";
import type { AttackedRoute } from "./attacked-routes.ts";
import type { Sent } from "./send.ts";

/** Phrases that only Node, V8, zod or llama.cpp use. */
const RAW_WORDS =
  /\bat \S+ \(|node:|\.ts:\d|\.cpp|llama_|ggml|GGML_|Unexpected token|in JSON at|call stack|is not a function|Cannot read prop|invalid_type|ZodError|E(?:NOENT|ACCES|MFILE|ISDIR|INVAL)\b|std::/;

/** A model that does not fit is a clear answer, as is one that a request asked for with a context beyond reason. */
const TOO_LARGE = /"insufficient_memory"/;

/** Nor is a fault what llama-server answers for something that a server does not offer: 501 with this type. */
const NOT_OFFERED = /"not_supported_error"/;

/** A valid answer, or an error in the route's own format without internal details. */
export function checkAnswer(
  { api, route }: AttackedRoute,
  sent: Sent,
  input: string,
  findings: Findings,
): void {
  const what = `${route.method} ${route.path} ${input}: ${sent.status} ${sent.text.slice(0, 300)}`;
  if (sent.status < 400) return;
  const isNotOffered = sent.status === 501 && NOT_OFFERED.test(sent.text);
  const isExplained = sent.status === 503 || isNotOffered || TOO_LARGE.test(sent.text);
  const isServerError = sent.status >= 500 && !isExplained;
  if (isServerError) findings.add("a server error", what);
  const body = parse(sent.text);
  if (!api.errorSchema.safeParse(body).success) findings.add("an error of another shape", what);
  if (RAW_WORDS.test(sent.text)) findings.add("raw words reached a client", what);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
