/** Threads need pages that are isolated from other origins. */
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default {
  server: { headers },
  preview: { headers },
  // The package finds its worker and its WebAssembly beside itself.
  optimizeDeps: { exclude: ["daybreak/browser"] },
};
