import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { z } from "zod";
import { pageListSchema } from "../../../../src/api/wire/page-files.ts";
import { isConnectOrigin } from "../../../../src/api/wire/page-policy.ts";
import { fakeApp } from "../../../support/fake-services.ts";

const WASM = { size: 4, etag: "a".repeat(64), read: () => new Blob(["wasm"]).stream() };
const app = fakeApp({ overrides: { engineImage: async () => Promise.resolve(WASM) } });

const iconSchema = z.object({ src: z.string(), sizes: z.string(), type: z.string(), purpose: z.string() });
const manifestSchema = z.object({
  name: z.string(),
  short_name: z.string().max(12),
  start_url: z.string(),
  scope: z.string(),
  display: z.literal("standalone"),
  theme_color: z.string().regex(/^#[\da-f]{6}$/),
  background_color: z.string().regex(/^#[\da-f]{6}$/),
  icons: z.array(iconSchema),
});

/** Returns width and height from the header of a PNG file. */
async function pixels(answer: Response): Promise<string> {
  const bytes = new DataView(await answer.arrayBuffer());
  return `${bytes.getUint32(16)}x${bytes.getUint32(20)}`;
}

test("the manifest has the fields that browsers require to install the page", async () => {
  const answer = await app.request("/ui/manifest.webmanifest");
  expect(answer.headers.get("content-type")).toBe("application/manifest+json");
  const manifest = manifestSchema.parse(await answer.json());
  expect(new URL(manifest.start_url, "http://host/ui/manifest.webmanifest").pathname).toBe("/ui/");
  expect(new URL(manifest.scope, "http://host/ui/manifest.webmanifest").pathname).toBe("/ui/");
  const found = await Promise.all(
    manifest.icons.map(async ({ src, type, purpose }) => {
      const icon = await app.request(`/ui/${src}`);
      const size = type === "image/png" ? await pixels(icon) : "any";
      return { src, type: icon.headers.get("content-type"), sizes: size, purpose };
    }),
  );
  expect(found).toEqual(manifest.icons);
  const sizes = manifest.icons.map((icon) => `${icon.sizes} ${icon.purpose}`);
  expect(sizes).toEqual(expect.arrayContaining(["192x192 any", "512x512 any", "512x512 maskable"]));
});

test("files.json lists every file of the page with its SHA-256", async () => {
  const list = pageListSchema.parse(await (await app.request("/ui/files.json")).json());
  const paths = list.files.map(({ path }) => path);
  for (const path of ["ui/", "ui/page.css", "ui/experiments/", "browser/page.js", "browser/engine-worker.js"])
    expect(paths).toContain(path);
  expect(paths.some((path) => path.startsWith("browser/page-"))).toBe(true);
  for (const { path, sha256 } of list.files) {
    const bytes = Buffer.from(await (await app.request(`/${path}`)).arrayBuffer());
    const hash = path.startsWith("browser/engine.wasm")
      ? WASM.etag
      : createHash("sha256").update(bytes).digest("hex");
    expect({ path, sha256 }).toEqual({ path, sha256: hash });
  }
});

test("the version in files.json changes with a file", async () => {
  const versionOf = async (of: typeof app): Promise<string> =>
    pageListSchema.parse(await (await of.request("/ui/files.json")).json()).version;
  const appWith = (etag: string): typeof app =>
    fakeApp({ overrides: { engineImage: async () => Promise.resolve({ ...WASM, etag }) } });
  expect(await versionOf(appWith(WASM.etag))).toBe(await versionOf(app));
  expect(await versionOf(appWith("b".repeat(64)))).not.toBe(await versionOf(app));
});

test("the service worker may control the whole origin, and is revalidated", async () => {
  const { headers, status } = await app.request("/ui/sw.js");
  expect(status).toBe(200);
  expect(headers.get("service-worker-allowed")).toBe("/");
  expect(headers.get("cache-control")).toBe("no-cache");
});

test("service worker and files.json are not served if the page is disabled", async () => {
  const bare = fakeApp({ config: { ui: false } });
  for (const path of ["/ui/sw.js", "/ui/files.json", "/ui/manifest.webmanifest"])
    expect((await bare.request(path)).status).toBe(404);
});

test("origins in the query are added to the policies of the page and its workers", async () => {
  const query = "?connect=http%3A%2F%2F127.0.0.1%3A81+https%3A%2F%2F*.hf.co";
  for (const path of ["/ui/", "/browser/store-worker.js"]) {
    const policy = (await app.request(path + query)).headers.get("content-security-policy");
    expect(policy).toMatch(/connect-src 'self' blob: http:\/\/127\.0\.0\.1:81 https:\/\/\*\.hf\.co(?:;|$)/);
  }
});

test.each([
  "http://a;sandbox",
  'http://a"b',
  "http://a'b",
  "http://a,b",
  "http://a/",
  "ftp://a",
  "http://a b",
  "http://*",
  "http://a.*.b",
  "*",
])("rejects %s as an origin in a policy", async (text) => {
  expect(isConnectOrigin(text)).toBe(false);
  expect((await app.request(`/ui/?connect=${encodeURIComponent(text)}x:y`)).status).toBe(400);
});

test("the page's policy allows the script of the tool frame, and no other inline script", async () => {
  const html = await (await app.request("/ui/tool-frame.html")).text();
  const script = /<script>([^]*)<\/script>/.exec(html)?.[1] ?? "";
  const hash = createHash("sha256").update(script).digest("base64");
  expect(html).toContain(`script-src 'sha256-${hash}'`);
  const policy = (await app.request("/ui/")).headers.get("content-security-policy");
  expect(policy).toContain(`script-src 'self' 'wasm-unsafe-eval' 'sha256-${hash}';`);
});

test.each([
  "/ui/",
  "/ui/files.json",
  "/ui/sw.js",
  "/ui/page.css",
  "/ui/manifest.webmanifest",
  "/browser/page.js",
])("%s is served without a key and while the daemon starts", async (path) => {
  const life = { state: "starting" as const };
  const config = { api_keys: ["secret"] };
  const locked = fakeApp({ config, overrides: { life, engineImage: async () => Promise.resolve(WASM) } });
  expect((await locked.request(path)).status).toBe(200);
});
