import type { TextPatch } from "../core/worker-patches.ts";

/** How long llama.cpp waits for a GPU before it gives up, in milliseconds. */
const STOCK_WAIT_MS = 30_000;

/**
 * Changes of llama.cpp's script by which an engine waits for its GPU as long as the daemon waits for the engine. The
 * first step on a device includes what its driver compiles, which a software adapter on a busy machine does for longer
 * than llama.cpp waits, however small the step is.
 * @param longestMs longest wait in milliseconds
 */
export function queueWaitPatches(longestMs: number): readonly TextPatch[] {
  return [
    {
      purpose: "know the timer of a wait",
      find: "var promises=[];if(timeoutMSPtr){",
      replace: "var promises=[],timer;if(timeoutMSPtr){",
    },
    {
      purpose: "wait for the GPU as long as the daemon does",
      find: "new Promise(resolve=>setTimeout(resolve,timeoutMS,0))",
      replace: `new Promise(resolve=>{timer=setTimeout(resolve,timeoutMS===${STOCK_WAIT_MS}?${longestMs}:timeoutMS)})`,
    },
    {
      // There are two waits for each token, and their timers would stay until they are due.
      purpose: "end the timer with the wait",
      find: "const firstResolvedFuture=await Promise.race(promises);",
      replace: "const firstResolvedFuture=await Promise.race(promises);clearTimeout(timer);",
    },
  ];
}
