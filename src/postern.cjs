#!/usr/bin/env node
// The command `postern` of the npm package. `main.ts` cannot check the version of Node: an old one fails while it links the imports.
require('./node-version.cjs')
import('./main.ts')
