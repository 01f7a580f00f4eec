import { lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Installer } from "./installers.ts";
import { runCommand } from "./run-command.ts";

/** Installing takes ten seconds where nothing is in a cache. */
const DEADLINE_MS = 240_000;

const SCOPE = "@daybreak-llm";

const MANIFEST = {
  name: "project",
  private: true,
  scripts: { "which-node": "node -p process.execPath" },
};

export interface ProjectOptions {
  /** Where projects and the tools' caches are. */
  readonly folder: string;
  /** Folder node_modules with the tools. */
  readonly tools: string;
  readonly registry: string;
  /** PATH of a user of this machine. */
  readonly path: string;
}

/** A user's project, and what an installer makes of it. */
export class InstallerProject {
  readonly name: string;
  readonly folder: string;
  readonly #program: string;
  readonly #installer: Installer;
  readonly #env: NodeJS.ProcessEnv;

  constructor(installer: Installer, options: ProjectOptions) {
    this.name = installer.name;
    this.#installer = installer;
    this.#program = installer.tool ? path.join(options.tools, installer.program) : installer.program;
    this.folder = path.join(options.folder, installer.name.replaceAll(/\W+/g, "-"));
    mkdirSync(this.folder);
    writeFileSync(path.join(this.folder, "package.json"), JSON.stringify(MANIFEST));
    writeFileSync(path.join(this.folder, ".npmrc"), `registry=${options.registry}\n`);
    // Without one, yarn 4 looks for a project in the folders above.
    writeFileSync(path.join(this.folder, "yarn.lock"), "");
    const home = path.join(options.folder, "home");
    mkdirSync(home, { recursive: true });
    this.#env = {
      ...plainEnvironment(),
      PATH: options.path,
      HOME: home,
      CI: "true",
      npm_config_update_notifier: "false",
      YARN_NPM_REGISTRY_SERVER: options.registry,
      ...installer.env,
    };
  }

  /** @throws Error with what the installer said, when it fails */
  async add(...packages: string[]): Promise<void> {
    await this.run(...this.#installer.add, ...packages);
  }

  /** @throws Error with what the installer said, when it fails */
  async run(...args: string[]): Promise<string> {
    return runCommand(this.#program, args, { cwd: this.folder, env: this.#env, timeoutMs: DEADLINE_MS });
  }

  /** A command that a package brings along. */
  command(name: string): string {
    return path.join(this.folder, "node_modules/.bin", name);
  }

  /** Names of the packages of our scope that are installed. */
  get platformPackages(): string[] {
    return this.#entries
      .filter((file) => path.basename(path.dirname(file)) === SCOPE && lstatSync(file).isDirectory())
      .map((file) => `${SCOPE}/${path.basename(file)}`)
      .toSorted();
  }

  /** Bytes of all files, those with several names counted once. */
  get size(): number {
    const files = this.#entries.map((file) => lstatSync(file)).filter((stats) => stats.isFile());
    const sizes = new Map(files.map((stats) => [stats.ino, stats.size]));
    return [...sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  /** Everything that is installed; links are not followed. */
  get #entries(): string[] {
    const folder = path.join(this.folder, "node_modules");
    return readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => path.join(folder, file));
  }
}

/** The environment, which may say how the network is reached, without what npm tells the scripts that it runs. */
function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|SERVICE_|HUB_|NODE_OPTIONS$)/i.test(name)),
  );
}
