import { mkdirSync } from "node:fs";
import path from "node:path";
import { isSuitableRuntime } from "../../src/launch/runtime.mjs";
import { InstallerProject, type ProjectOptions } from "./installer-project.ts";
import { type Installer, NPM, PLUG_AND_PLAY } from "./installers.ts";
import { platformOf } from "./platform-manifests.ts";
import { runCommand } from "./run-command.ts";
import { tryProgram } from "./try-program.ts";

const OWN = platformOf(`${process.platform}-${process.arch}`);

/**
 * Installs the program in a project, sees that it answers, that nothing came along for other platforms, and that the
 * project's own scripts keep the user's Node.
 */
export async function checkInstaller(installer: Installer, options: ProjectOptions): Promise<string> {
  const project = new InstallerProject(installer, options);
  const startedAt = performance.now();
  await project.add("daybreak");
  const seconds = (performance.now() - startedAt) / 1000;
  expectPackages(project, [OWN.dawn, OWN.node]);
  await tryProgram(project.command("daybreak"), project.folder, options.path);
  const found = await project.run("run", "which-node");
  const own = await systemNode("process.execPath", options);
  if (!found.includes(own)) throw new Error(`A script does not run under ${own}: ${found}`);
  return `${installer.name}: ${(project.size / 1e6).toFixed(0)} MB, ${seconds.toFixed(0)} s`;
}

/** Sees that npx starts the program where it is not installed. */
export async function checkNpx(options: ProjectOptions): Promise<string> {
  const project = new InstallerProject({ ...NPM, name: "npx" }, options);
  await project.run("exec", "--yes", "--", "daybreak", "--version");
  return "npx starts it where it is not installed";
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
  if (!isSuitableRuntime({ node: await systemNode("process.versions.node", options) }))
    await expectFailure(daybreak("--version"), `npm install ${OWN.node} `);
  await project.add(OWN.node);
  expectPackages(project, [OWN.node]);
  await tryProgram(project.command("daybreak"), project.folder, options.path);
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

/** Evaluates an expression with the user's own Node. */
async function systemNode(expression: string, options: ProjectOptions): Promise<string> {
  const env = { PATH: options.path };
  return (await runCommand("node", ["-p", expression], { cwd: options.folder, env })).trim();
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
