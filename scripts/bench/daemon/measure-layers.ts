import type { EngineCore } from "../../../src/engine/core/engine-core.ts";
import { measureInProcess, measureOverHttp, type StreamTiming, type Workload } from "./measure-stream.ts";
import { fetchClient, plainClient, type StreamClient } from "./stream-client.ts";

/** A service that has just started runs code that V8 has not compiled yet; the prompt cache is empty as well. */
const WARM_UP_RUNS = 60;

/** Enough to know that a first token was one of several; the rest of an answer says nothing about its beginning. */
const SHORT_ANSWER = 4;

/** Times to first token vary a lot and are cheap to measure, so many are taken. */
const FIRST_TOKENS_PER_RUN = 20;

/** The same work on both sides, run by run. */
export interface LayerTimings {
  readonly inProcess: readonly StreamTiming[];
  readonly overHttp: readonly StreamTiming[];
  readonly first: {
    /** Milliseconds. */
    readonly inProcess: readonly number[];
    readonly overHttp: readonly number[];
    readonly overFetch: readonly number[];
  };
  /** Milliseconds of requests that ask no engine: what HTTP and the client cost by themselves. */
  readonly bare: { readonly plain: readonly number[]; readonly fetch: readonly number[] };
}

/** In-process and over HTTP in turn, so that a change of the machine's speed meets both. */
export async function measureLayers(
  runs: number,
  workload: Workload,
  engine: EngineCore,
  url: string,
): Promise<LayerTimings> {
  const short = { ...workload, maxTokens: SHORT_ANSWER };
  const firsts = async () => ({
    inProcess: (await measureInProcess(engine, short)).firstTokenMs,
    overHttp: (await measureOverHttp(url, short)).firstTokenMs,
    overFetch: (await measureOverHttp(url, short, fetchClient)).firstTokenMs,
    plain: await bareRequest(url, plainClient),
    fetch: await bareRequest(url, fetchClient),
  });
  for (let run = 0; run < WARM_UP_RUNS; run++) await firsts();
  const inProcess: StreamTiming[] = [];
  const overHttp: StreamTiming[] = [];
  const first: Awaited<ReturnType<typeof firsts>>[] = [];
  for (let run = 0; run < runs; run++) {
    for (let each = 0; each < FIRST_TOKENS_PER_RUN; each++) first.push(await firsts());
    inProcess.push(await measureInProcess(engine, workload));
    overHttp.push(await measureOverHttp(url, workload));
  }
  return {
    inProcess,
    overHttp,
    first: {
      inProcess: first.map((each) => each.inProcess),
      overHttp: first.map((each) => each.overHttp),
      overFetch: first.map((each) => each.overFetch),
    },
    bare: { plain: first.map((each) => each.plain), fetch: first.map((each) => each.fetch) },
  };
}

async function bareRequest(url: string, client: StreamClient): Promise<number> {
  const start = performance.now();
  await client(`${url}/health`, undefined, () => {});
  return performance.now() - start;
}
