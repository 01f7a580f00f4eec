import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { ServerResponse } from "node:http";
import { sendBytes, sendFault, type Fault } from "./fixture-hub-body.ts";
import { storeRepo, type FixtureRepo, type StoredFile, type StoredRepo } from "./fixture-hub-content.ts";
import { infoAnswer, searchAnswer } from "./fixture-hub-search.ts";
import { reconstructionOf, xorbOf } from "./fixture-hub-xet.ts";

export type { Fault } from "./fixture-hub-body.ts";
export type { FixtureFile, FixtureRepo } from "./fixture-hub-content.ts";

/** A request that one of the two servers has received. */
interface SeenRequest {
  readonly server: "hub" | "storage";
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

export interface FixtureHub {
  /** Address to configure as HUB_URL. */
  readonly url: string;
  /** Address of the second server, of another origin, that large files are redirected to. */
  readonly storageUrl: string;
  /** Every request of both servers in the order of arrival. */
  readonly requests: SeenRequest[];
  /** Bodies asked for: the requests for files, without those for listings. */
  readonly downloads: readonly SeenRequest[];
  /** Adds a repository or puts another in its place. */
  setRepo(name: string, repo: FixtureRepo): void;
  /**
   * The next `times` (default 1) requests whose "server method path" matches go wrong. Faults are used in the
   * order they were added.
   */
  failNext(match: RegExp, fault: Fault, times?: number): void;
  close(): Promise<void>;
}

export interface FixtureHubOptions {
  /** By name, owner/repository. */
  readonly repos?: Readonly<Record<string, FixtureRepo>>;
  /** Files on one page of a listing. */
  readonly pageSize?: number;
  /** Says for each request what goes wrong with it, if anything; asked before what {@link FixtureHub.failNext} plans. */
  readonly plan?: (request: SeenRequest) => Fault | undefined;
}

interface Planned {
  readonly match: RegExp;
  readonly fault: Fault;
  times: number;
}

const DEFAULT_PAGE_SIZE = 1000;

/** Starts a hub and its storage server on free ports of the loopback address. */
export async function startFixtureHub(options: FixtureHubOptions = {}): Promise<FixtureHub> {
  const repos = new Map<string, StoredRepo>();
  for (const [name, repo] of Object.entries(options.repos ?? {})) repos.set(name, storeRepo(name, repo));
  const requests: SeenRequest[] = [];
  const planned: Planned[] = [];
  const urls = { hub: "", storage: "" };

  const serve = (server: SeenRequest["server"]) => (request: IncomingMessage, response: ServerResponse) => {
    const { method = "GET", url: path = "/", headers } = request;
    // Pages of all origins may ask, as with the real one.
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-expose-headers", "Link, ETag, Accept-Ranges, Content-Range");
    if (method === "OPTIONS") {
      response.writeHead(204, { "access-control-allow-headers": "authorization, range" }).end();
      return;
    }
    const seen: SeenRequest = { server, method, path, headers };
    requests.push(seen);
    const plan = planned.find((entry) => entry.times > 0 && entry.match.test(`${server} ${method} ${path}`));
    if (plan) plan.times--;
    const fault = options.plan?.(seen) ?? plan?.fault ?? {};
    if (fault.redirect !== undefined) {
      response.writeHead(302, { location: fault.redirect, ...fault.headers }).end();
    } else if (fault.status !== undefined || fault.body !== undefined) {
      void sendFault(response, fault);
    } else {
      const route = new Route(request, response, new URL(path, urls[server]), fault);
      void (server === "hub" ? answerHub(route, repos, urls, options) : answerStorage(route, repos, urls));
    }
  };

  const hub = createServer(serve("hub"));
  const storage = createServer(serve("storage"));
  urls.hub = await listen(hub);
  urls.storage = await listen(storage);
  return {
    url: urls.hub,
    storageUrl: urls.storage,
    requests,
    get downloads() {
      return requests.filter((seen) => /\/(?:resolve|stored|xorbs)\//.test(seen.path));
    },
    setRepo: (name, repo) => void repos.set(name, storeRepo(name, repo)),
    failNext: (match, fault, times = 1) => void planned.push({ match, fault, times }),
    close: async () => {
      await Promise.all([stop(hub), stop(storage)]);
    },
  };
}

class Route {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly fault: Fault;

  constructor(request: IncomingMessage, response: ServerResponse, url: URL, fault: Fault) {
    this.request = request;
    this.response = response;
    this.url = url;
    this.fault = fault;
  }

  get token(): string | undefined {
    return /^Bearer (.+)$/.exec(this.request.headers.authorization ?? "")?.[1];
  }

  json(body: unknown, headers: Record<string, string> = {}, status = 200): void {
    const text = JSON.stringify(body);
    this.response
      .writeHead(status, {
        "content-type": "application/json; charset=utf-8",
        ...headers,
        ...this.fault.headers,
      })
      .end(text);
  }

  error(status: number, code: string, message: string): void {
    this.json({ error: message }, { "x-error-code": code, "x-error-message": message }, status);
  }

  send(bytes: Buffer, etag: string): Promise<void> {
    return sendBytes(this.request, this.response, bytes, etag, this.fault);
  }
}

async function answerHub(
  route: Route,
  repos: ReadonlyMap<string, StoredRepo>,
  urls: { hub: string; storage: string },
  { pageSize = DEFAULT_PAGE_SIZE }: FixtureHubOptions,
): Promise<void> {
  if (route.url.pathname === "/api/models") {
    const visible = [...repos.values()].filter(({ privateTo }) => mayRead(privateTo, route.token));
    return route.json(searchAnswer(visible, route.url.searchParams));
  }
  const info = /^\/api\/models\/([^/]+\/[^/]+)$/.exec(route.url.pathname);
  const api = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree|xet-read-token)\/([^/]+)$/.exec(
    route.url.pathname,
  );
  const resolve = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(route.url.pathname);
  const repo = repos.get(info?.[1] ?? api?.[1] ?? resolve?.[1] ?? "");
  if (repo === undefined || !mayRead(repo.privateTo, route.token)) {
    // The hub does not tell strangers which repositories exist.
    if (route.token === undefined) route.error(401, "RepoNotFound", "Invalid username or password.");
    else route.error(404, "RepoNotFound", "Repository not found");
    return;
  }
  if (info) return route.json(infoAnswer(repo, route.url.searchParams));
  const revision = decodeURIComponent(api?.[3] ?? resolve?.[2] ?? "");
  const commit = repo.revisions.get(revision);
  if (commit === undefined) return route.error(404, "RevisionNotFound", `Invalid rev id: ${revision}`);
  if (api?.[2] === "revision") return route.json({ _id: "1", id: repo.name, sha: commit, gated: false });
  if (api?.[2] === "tree") return sendTree(route, repo, urls.hub, pageSize);
  if (!mayRead(repo.gatedTo, route.token)) {
    const message = `Access to model ${repo.name} is restricted.`;
    return route.error(route.token === undefined ? 401 : 403, "GatedRepo", message);
  }
  if (api !== null)
    return route.json({
      accessToken: "chunk-storage-token",
      casUrl: urls.storage,
      exp: Date.now() / 1000 + 3600,
    });
  const file = repo.files.get(decodeURIComponent(resolve?.[3] ?? ""));
  if (file === undefined) return route.error(404, "EntryNotFound", "Entry not found");
  await resolveFile(route, repo, commit, file, urls);
}

function sendTree(route: Route, repo: StoredRepo, hubUrl: string, pageSize: number): void {
  const start = Number(route.url.searchParams.get("cursor") ?? 0);
  const all = [...repo.files.values()];
  const page = all.slice(start, start + pageSize).map(treeEntry);
  const next = new URL(route.url.pathname + route.url.search, hubUrl);
  next.searchParams.set("cursor", String(start + pageSize));
  route.json(page, start + pageSize < all.length ? { link: `<${next.href}>; rel="next"` } : {});
}

/** Absent parts are left out of the JSON, as the hub does. */
function treeEntry(file: StoredFile): object {
  const { path, size, oid, sha256 } = file;
  const lfs = file.lfs ? { oid: sha256, size, pointerSize: 134 } : undefined;
  return { type: "file", path, size, oid, lfs, xetHash: file.xet ? sha256 : undefined };
}

async function resolveFile(
  route: Route,
  repo: StoredRepo,
  commit: string,
  file: StoredFile,
  urls: { hub: string; storage: string },
): Promise<void> {
  const id = `${repo.name}/${encodeURIComponent(file.path)}`;
  const headers = {
    "x-repo-commit": commit,
    "x-linked-etag": `"${file.lfs ? file.sha256 : file.oid}"`,
    "x-linked-size": String(file.size),
  };
  if (file.xet && route.request.headers.accept?.includes("application/vnd.xet-fileinfo+json")) {
    const links = [
      `<${urls.hub}/api/models/${repo.name}/xet-read-token/${commit}>; rel="xet-auth"`,
      `<${urls.storage}/v1/reconstructions/${id}>; rel="xet-reconstruction-info"`,
    ];
    const xet = { "x-xet-hash": file.sha256, link: links.join(", ") };
    route.json({}, { ...headers, ...xet, "content-type": "application/vnd.xet-fileinfo+json" });
    return;
  }
  if (!file.lfs) return route.send(file.bytes, file.oid);
  const location = `${urls.storage}/stored/${id}`;
  route.response.writeHead(302, { ...headers, location, ...route.fault.headers }).end();
}

async function answerStorage(
  route: Route,
  repos: ReadonlyMap<string, StoredRepo>,
  urls: { storage: string },
): Promise<void> {
  const match = /^\/(stored|xorbs|v2\/reconstructions)\/([^/]+\/[^/]+)\/([^/]+)$/.exec(route.url.pathname);
  const file = repos.get(match?.[2] ?? "")?.files.get(decodeURIComponent(match?.[3] ?? ""));
  if (match === null || file === undefined) return void route.response.writeHead(404).end();
  if (match[1] === "stored") return route.send(file.bytes, `stored-${file.oid}`);
  if (match[1] === "xorbs") return route.send(xorbOf(file), `xorb-${file.oid}`);
  const from = Number(/^bytes=(\d+)-/.exec(route.request.headers.range ?? "")?.[1] ?? 0);
  const xorbUrl = `${urls.storage}/xorbs/${match[2]}/${match[3]}`;
  route.json(reconstructionOf(file, from, xorbUrl));
}

function mayRead(tokens: readonly string[] | undefined, token: string | undefined): boolean {
  return tokens === undefined || (token !== undefined && tokens.includes(token));
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
    });
  });
}

function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
