import type { TextPatch } from "./worker-patches.ts";

const MIB = 1024 * 1024;

/**
 * llama.cpp's server keeps up to 8 GiB of prompts that no slot holds any more, and wllama has no parameter for it: the
 * setting (`cache_ram_mib`, an int32 in MiB) is overwritten before the model is loaded. It is found among llama.cpp's
 * static data, by its default and the settings around it.
 */
const PROMPT_CACHE_DEFAULT = 8192;
/** `n_ctx_checkpoints`, and after padding `checkpoint_every_nt`: offset in numbers of 32 bits, and default. */
const SETTINGS_AROUND_IT = [
  [-3, 32],
  [-2, 0],
  [-1, 8192],
  [1, 0],
] as const;
/** Static data lies below the stack, which has copies of it. */
const STATIC_BYTES = 4 * 1024 * 1024;

/**
 * Gives llama.cpp's prompt cache its size.
 * @param bytes 0 turns it off
 */
export function promptCachePatch(bytes: number): TextPatch {
  return {
    purpose: "give llama.cpp's prompt cache its size",
    find: "// copy data to wasm heap",
    replace: `if (argAction === 'load') {
      const data = new Int32Array(getHeapU8().buffer, 0, ${STATIC_BYTES / 4});
      const isSetting = (at) => ${SETTINGS_AROUND_IT.map(([offset, value]) => `data[at + ${offset}] === ${value}`).join(" && ")};
      const settings = [];
      for (let at = 0; (at = data.indexOf(${PROMPT_CACHE_DEFAULT}, at + 1)) > 0; ) if (isSetting(at)) settings.push(at);
      if (settings.length !== 1) {
        msg({ callbackId, err: { message: 'this version of @wllama/wllama is not supported: settings have moved ' + settings } });
        return;
      }
      data[settings[0]] = ${Math.ceil(bytes / MIB)};
    }
    // copy data to wasm heap`,
  };
}
