/** What our code uses and Safari lacks. Every script for browsers imports it before anything else. */
import "core-js/es/symbol/dispose.js";
import "core-js/es/disposable-stack/index.js";
