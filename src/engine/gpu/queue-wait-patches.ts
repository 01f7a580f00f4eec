import { MAX_TIMER_MS } from "../../async/watchdog.ts";
import type { TextPatch } from "../core/worker-patches.ts";

/** How long llama.cpp waits for a GPU before it gives up, in milliseconds. */
const STOCK_WAIT_MS = 30_000;

/**
 * Patches llama.cpp's script so that an engine waits for its GPU as long as the daemon waits for the engine. During the
 * first step the driver compiles shaders, which may take longer than llama.cpp waits.
 * @param longestMs longest wait in milliseconds; Infinity: weeks
 */
export function queueWaitPatches(longestMs: number): readonly TextPatch[] {
  return [
    {
      purpose: "keep the timer of a wait",
      find: "var promises=[];if(timeoutMSPtr){",
      replace: "var promises=[],timer;if(timeoutMSPtr){",
    },
    {
      purpose: "wait for the GPU as long as the daemon does",
      find: "new Promise(resolve=>setTimeout(resolve,timeoutMS,0))",
      replace: `new Promise(resolve=>{timer=setTimeout(resolve,timeoutMS===${STOCK_WAIT_MS}?${Math.min(longestMs, MAX_TIMER_MS)}:timeoutMS)})`,
    },
    {
      // Each token has two waits, whose timers would otherwise pile up.
      purpose: "clear the timer after the wait",
      find: "const firstResolvedFuture=await Promise.race(promises);",
      replace: "const firstResolvedFuture=await Promise.race(promises);clearTimeout(timer);",
    },
  ];
}
