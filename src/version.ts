import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
// Proof of the cast: npm packs nothing without a version. The build replaces this file, because a bundle has no manifest.
export const VERSION: string = (JSON.parse(manifest) as { readonly version: string }).version
