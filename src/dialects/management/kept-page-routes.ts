import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { sendFile } from "../../http/streaming/send-file.ts";
import type { ManagementServices } from "./management-services.ts";
import { isKept, pageList, pageListSchema, sha256Of } from "./page-list.ts";
import { EXPERIMENTS_FILES, FRAME_FILES, UI_FILES } from "./page-files.ts";

const common = { method: "GET", tag: "Page", alwaysOn: true, keyless: true } as const;

/** What keeps the page in a browser, which then shows it without a daemon: a service worker, and the list of its files. */
export function keptPageRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      ...common,
      path: "/ui/sw.js",
      summary: "The service worker of the page, which keeps its files in the browser",
      answers: [{ contentType: "text/javascript", description: "The script." }],
      handle: async (context) =>
        sendFile(context, await services.browserScripts.read("sw.js"), {
          "content-type": "text/javascript; charset=utf-8",
          "cache-control": "no-cache",
          "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'",
          // The engine's files are beside the page's.
          "service-worker-allowed": "/",
          "x-content-type-options": "nosniff",
        }),
    }),
    defineRoute({
      ...common,
      path: "/ui/files.json",
      summary: "The files of the page with their SHA-256",
      answers: [{ description: "The list.", schema: pageListSchema }],
      handle: async (context) => {
        const list = await pageList([...(await pageFiles(services)), ...(await engineFiles(services))]);
        return context.json(list, 200, { "cache-control": "no-store" });
      },
    }),
  ];
}

async function pageFiles(services: ManagementServices) {
  const all = Object.entries({ ...UI_FILES, ...FRAME_FILES, ...EXPERIMENTS_FILES });
  return await Promise.all(
    all.map(async ([path, name]) => ({
      path: path.slice(1),
      sha256: await sha256Of(services.pageFile(name).content),
    })),
  );
}

async function engineFiles(services: ManagementServices) {
  const { browserScripts } = services;
  const scripts = (await browserScripts.names()).filter(isKept);
  return await Promise.all([
    ...scripts.map(async (name) => ({
      path: `browser/${name}`,
      sha256: (await browserScripts.read(name)).etag,
    })),
    services
      .engineImage()
      .then(({ etag }) => ({ path: `browser/engine.wasm?v=${IMAGE_SHA256}`, sha256: etag })),
  ]);
}
