/** The package's own folder: the same from src/cli in the repository and from dist/cli in the published package. */
export const PACKAGE_FOLDER = new URL("../../", import.meta.url);
