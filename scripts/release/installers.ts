export interface Installer {
  readonly name: string;
  /** npm package that it is in, with its version; absent for npm, which is there already. */
  readonly tool?: string;
  /** Program of the system, or path in the node_modules that has the tools. */
  readonly program: string;
  /** Adds packages to the project. */
  readonly add: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const YARN_4 = {
  tool: "@yarnpkg/cli-dist@4.18.1",
  program: "@yarnpkg/cli-dist/bin/yarn.js",
  add: ["add"],
} as const;

const YARN_4_ENV = {
  YARN_ENABLE_TELEMETRY: "0",
  YARN_ENABLE_IMMUTABLE_INSTALLS: "false",
  YARN_UNSAFE_HTTP_WHITELIST: "127.0.0.1",
};

/** Without AVX2. The package named bun links to one of these by a script, and no script of a tool runs. */
const BUN = `@oven/bun-${process.platform}-${process.arch === "arm64" ? "aarch64" : "x64-baseline"}`;

export const NPM: Installer = {
  name: "npm",
  program: "npm",
  add: ["install", "--no-audit", "--no-fund"],
};

/** As people install packages. */
export const INSTALLERS: readonly Installer[] = [
  NPM,
  { name: "pnpm", tool: "pnpm@12.21.0", program: ".bin/pnpm", add: ["add"] },
  { name: "yarn 1", tool: "yarn@1.22.22", program: "yarn/bin/yarn.js", add: ["add", "--non-interactive"] },
  { name: "yarn 4", ...YARN_4, env: { ...YARN_4_ENV, YARN_NODE_LINKER: "node-modules" } },
  { name: "bun", tool: `${BUN}@1.4.5`, program: `${BUN}/bin/bun`, add: ["add"] },
];

/** Keeps packages in archives, from which Daybreak cannot run. */
export const PLUG_AND_PLAY: Installer = {
  name: "yarn 4, Plug'n'Play",
  ...YARN_4,
  env: { ...YARN_4_ENV, YARN_NODE_LINKER: "pnp" },
};
