import { existsSync } from "node:fs";
import type { LaunchOptions } from "./launch-chromium.ts";

/** Where .ci/install-chromium-gpu puts it. */
const FOLDER = "/usr/local/lib/daybreak-chromium-gpu";

const PROGRAM = `${FOLDER}/chromium/chromium`;

/** A Chromium whose pages have WebGPU on lavapipe; undefined where it is not installed. */
export const chromiumWithGpu = existsSync(PROGRAM) ? PROGRAM : undefined;

/** How it is started. */
export const WITH_GPU: Partial<LaunchOptions> = {
  flags: [
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    "--use-angle=vulkan",
    "--ignore-gpu-blocklist",
    // It takes no other driver after the first one has crashed.
    "--disable-gpu-process-crash-limit",
  ],
  env: {
    VK_LAYER_PATH: FOLDER,
    VK_INSTANCE_LAYERS: "VK_LAYER_DAYBREAK_lavapipe",
    VK_ICD_FILENAMES: `${FOLDER}/lavapipe.json`,
  },
};
