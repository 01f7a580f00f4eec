import { DaemonAway } from "./daemon-api.ts";

/**
 * The values of an answer that is a stream of lines of JSON.
 * @throws DaemonAway when the stream is cut
 */
export async function* jsonLines(answer: Response): AsyncGenerator<unknown, void, undefined> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw error instanceof TypeError ? new DaemonAway(error) : error;
    });
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}
