/** Polyfills for Safari. Every script for browsers imports this module first. */
import "core-js/es/symbol/dispose.js";
import "core-js/es/disposable-stack/index.js";
