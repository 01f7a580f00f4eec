/** The folder that holds src: the repository, or dist in the published package. */
export const PACKAGE_FOLDER = new URL("../../", import.meta.url);
