// Written by `npm run evidence` from test/evidence/sources; change it there.
import type { Required } from './evidence.ts'

/** The requirements of docs/evidence.md that depend on the configuration, and those that are tasks of the vendor. */
export const REQUIREMENTS: readonly Required[] = [
]
