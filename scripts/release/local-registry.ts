import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import path from "node:path";
import { list } from "tar";
import { z } from "zod";

/** Old enough for installers that refuse packages published yesterday. */
const PUBLISHED_AT = "2020-01-01T00:00:00.000Z";

const manifestSchema = z.looseObject({ name: z.string(), version: z.string() });

interface LocalRegistry extends AsyncDisposable {
  readonly url: string;
}

interface LocalRegistryOptions {
  /** Where the tarballs are. */
  readonly folder: string;
  /** Packages that are listed although they are not in the folder: fetching one fails. */
  readonly others: readonly object[];
  /** URL of the registry that has everything else. */
  readonly upstream: string;
}

/** Serves the tarballs of a folder as npm's registry serves packages, on this machine alone. */
export async function startLocalRegistry({
  folder,
  others,
  upstream,
}: LocalRegistryOptions): Promise<LocalRegistry> {
  const packages = new Map<string, object>();
  const server = createServer((request, response) => {
    answer(request, response, { folder, packages, upstream }).catch((error: unknown) => {
      response.writeHead(502).end(String(error));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The local registry has no port.");
  const url = `http://127.0.0.1:${address.port}`;
  for (const file of readdirSync(folder).filter((each) => each.endsWith(".tgz"))) {
    const tarball = path.join(folder, file);
    const manifest = manifestSchema.parse(JSON.parse(await readManifest(tarball)));
    packages.set(manifest.name, document(manifest, `${url}/-/${file}`, readFileSync(tarball)));
  }
  for (const manifest of others.map((each) => manifestSchema.parse(each))) {
    if (packages.has(manifest.name)) continue;
    packages.set(manifest.name, document(manifest, `${url}/-/none.tgz`, new Uint8Array()));
  }
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Returns a registry's document of a package with one version. */
function document(manifest: z.infer<typeof manifestSchema>, tarball: string, bytes: Uint8Array) {
  const { name, version } = manifest;
  const dist = {
    tarball,
    integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}`,
    shasum: createHash("sha1").update(bytes).digest("hex"),
  };
  return {
    name,
    "dist-tags": { latest: version },
    time: { created: PUBLISHED_AT, modified: PUBLISHED_AT, [version]: PUBLISHED_AT },
    versions: { [version]: { ...manifest, dist } },
  };
}

async function readManifest(tarball: string): Promise<string> {
  const chunks: Buffer[] = [];
  await list({
    file: tarball,
    onReadEntry(entry) {
      if (entry.path === "package/package.json") entry.on("data", (chunk: Buffer) => chunks.push(chunk));
    },
  });
  return Buffer.concat(chunks).toString();
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { folder, packages, upstream }: { folder: string; packages: Map<string, object>; upstream: string },
): Promise<void> {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  const known = packages.get(decodeURIComponent(pathname.slice(1)));
  if (known)
    return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(known));
  if (path.dirname(pathname) === "/-") {
    const file = readdirSync(folder).find((each) => each === path.basename(pathname));
    if (file === undefined) return void response.writeHead(404).end();
    return void response.writeHead(200).end(readFileSync(path.join(folder, file)));
  }
  const other = await fetch(new URL(pathname.slice(1), upstream), {
    headers: { accept: request.headers.accept ?? "*/*" },
  });
  const type = other.headers.get("content-type") ?? "application/octet-stream";
  response.writeHead(other.status, { "content-type": type }).end(Buffer.from(await other.arrayBuffer()));
}
