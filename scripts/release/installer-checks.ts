import { mkdirSync } from "node:fs";
import path from "node:path";
import { runtimeSuits } from "../../src/launch/runtime.mjs";
import { InstallerProject, type ProjectOptions } from "./installer-project.ts";
import { type Installer, NPM, PLUG_AND_PLAY } from "./installers.ts";
import { platformOf } from "./platform-manifests.ts";
import { runCommand } from "./run-command.ts";
import { tryProgram } from "./try-program.ts";

const OWN = platformOf(`${process.platform}-${process.arch}`);

/** Installs the program in a project, sees that it answers, and that nothing came along for other platforms. */
export async function checkInstaller(installer: Installer, options: ProjectOptions): Promise<string> {
  const project = new InstallerProject(installer, options);
  const startedAt = performance.now();
  await project.add("daybreak");
  const seconds = (performance.now() - startedAt) / 1000;
  expectPackages(project, [OWN.dawn, OWN.node]);
  await tryProgram(project.command("daybreak"), [], { folder: project.folder, path: options.path });
  return `${installer.name}: ${(project.size / 1e6).toFixed(0)} MB, ${seconds.toFixed(0)} s`;
}

/** Sees that npx starts the program where it is not installed, and that a project's scripts keep the user's Node. */
export async function checkNpm(options: ProjectOptions): Promise<string> {
  const project = new InstallerProject({ ...NPM, name: "npm scripts" }, options);
  const tried = new InstallerProject({ ...NPM, name: "npx" }, options);
  await tried.run("exec", "--yes", "--", "daybreak", "--version");
  await project.add("daybreak");
  const found = (await project.run("run", "--silent", "which-node")).trim();
  const own = (
    await runCommand("node", ["-p", "process.execPath"], {
      cwd: options.folder,
      env: { PATH: options.path },
    })
  ).trim();
  if (found !== own) throw new Error(`A script of the project runs under ${found}, and not under ${own}.`);
  return "npx starts it, and a project's scripts keep the user's Node";
}

/** Sees that the optional packages can be left out and added later, by the lines that the program says. */
export async function checkWithoutOptional(options: ProjectOptions): Promise<string> {
  const leftOut = { ...NPM, name: "without optional", add: [...NPM.add, "--omit=optional"] };
  const project = new InstallerProject(leftOut, options);
  const daybreak = async (...args: string[]): Promise<string> =>
    runCommand(project.command("daybreak"), args, {
      cwd: project.folder,
      env: { PATH: options.path, HOME: project.folder },
    });
  await project.add("daybreak");
  expectPackages(project, []);
  const version = await runCommand("node", ["-p", "process.versions.node"], {
    cwd: options.folder,
    env: { PATH: options.path },
  });
  if (!runtimeSuits(version)) await expectFailure(daybreak("--version"), `npm install ${OWN.node} `);
  await project.add(OWN.node);
  expectPackages(project, [OWN.node]);
  await tryProgram(project.command("daybreak"), [], { folder: project.folder, path: options.path });
  const without = await daybreak("gpu");
  if (!without.includes(`npm install ${OWN.dawn} `)) throw new Error(`daybreak gpu said: ${without}`);
  await project.add(OWN.dawn);
  expectPackages(project, [OWN.dawn, OWN.node]);
  const withDawn = await daybreak("gpu");
  if (withDawn.includes("npm install")) throw new Error(`daybreak gpu said: ${withDawn}`);
  return "npm --omit=optional leaves Node and Dawn out, and both can be added later";
}

/** Sees that the program says what to do where it cannot run. */
export async function checkPlugAndPlay(options: ProjectOptions): Promise<string> {
  const project = new InstallerProject(PLUG_AND_PLAY, options);
  await project.add("daybreak");
  await expectFailure(project.run("daybreak", "--version"), "nodeLinker: node-modules");
  return `${PLUG_AND_PLAY.name}: refused with what to do`;
}

/**
 * Installs all tools.
 * @returns the folder node_modules that they are in
 */
export async function installTools(folder: string, installers: readonly Installer[]): Promise<string> {
  mkdirSync(folder);
  const tools = new Set(installers.flatMap(({ tool }) => tool ?? []));
  const quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"];
  await runCommand("npm", ["install", "--prefix", folder, ...quiet, ...tools], { cwd: folder });
  return path.join(folder, "node_modules");
}

function expectPackages(project: InstallerProject, expected: readonly string[]): void {
  const found = project.platformPackages;
  if (found.join(" ") !== expected.join(" ")) {
    throw new Error(`${project.name} has installed ${found.join(", ") || "nothing"} for platforms.`);
  }
}

async function expectFailure(run: Promise<string>, words: string): Promise<void> {
  const said = await run.then(
    (output) => `nothing was wrong: ${output}`,
    (error: unknown) => String(error),
  );
  if (!said.includes(words)) throw new Error(`"${words}" was not said: ${said}`);
}
