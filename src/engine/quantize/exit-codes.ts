/** Exit code of the process that quantizes when a tensor holds values that are not finite; not one of Node's own. */
export const INVALID_WEIGHTS_EXIT_CODE = 79;
